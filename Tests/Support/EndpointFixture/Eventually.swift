// Polls until a condition eventually holds. Tests use this for conditions that no event reports: a counter, or a
// response of the server.

/// Polls until a condition holds, for at most 60 seconds.
///
/// - Returns: whether the condition held.
func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
  let deadline = ContinuousClock.now + .seconds(60)
  while ContinuousClock.now < deadline {
    if try await condition() { return true }
    try await Task.sleep(for: .milliseconds(5))
  }
  return try await condition()
}
