// Waits for a standstill: backpressure has stopped a counter, for example the number of sent messages. No event reports
// a standstill.

/// Waits until a number has not changed during many round trips to the server. Counting round trips adapts
/// the wait to the speed of the machine. If the wait ends too early, the returned number is too low. The test is then
/// less strict, but does not fail because of it.
///
/// - Parameters:
///   - end: the wait ends immediately when the number reaches this value.
///   - roundTrip: sends a request that the server answers in spite of the backpressure.
/// - Returns: the number at the end of the wait.
func standstill(
  of count: () -> Int, below end: Int = .max, roundTrips: Int = 300, _ roundTrip: () async throws -> Void
) async throws -> Int {
  var last = count()
  var unchangedCount = 0
  let deadline = ContinuousClock.now + .seconds(120)
  while unchangedCount < roundTrips, last < end {
    guard ContinuousClock.now < deadline else { throw DeadlinePassed() }
    try await roundTrip()
    let now = count()
    unchangedCount = now == last ? unchangedCount + 1 : 0
    last = now
  }
  return last
}
