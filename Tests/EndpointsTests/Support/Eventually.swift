// Waiting for what nothing announces: a number that a server keeps, or what it answers.

/// Asks again and again until a condition holds, for a time that is long on any machine.
///
/// - Returns: whether it came to hold.
func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
  let deadline = ContinuousClock.now + .seconds(60)
  while ContinuousClock.now < deadline {
    if try await condition() { return true }
    try await Task.sleep(for: .milliseconds(5))
  }
  return try await condition()
}
