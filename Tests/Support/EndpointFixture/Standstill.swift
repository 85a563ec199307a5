// Waits until back-pressure stops a counter; no event reports this.

/// Waits until a number has not changed during many round trips to the server. Round trips take longer on a
/// slow machine. With too few round trips the number is too low, and the test is only less strict.
///
/// - Parameters:
///   - end: a number at which the wait ends immediately.
///   - roundTrip: sends a request that the server answers in spite of the back-pressure.
/// - Returns: the number.
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
