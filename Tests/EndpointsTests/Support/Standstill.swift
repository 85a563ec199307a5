// Waiting for something that stops: what a server that holds its peer back takes in comes to a halt, and nothing says so.

/// Waits until a number has not changed over many round trips to the server that changes it. On a slow machine those take
/// longer too; were they still too few, the number would be lower, and what a test says about it weaker.
///
/// - Parameters:
///   - end: a number at which there is nothing left to wait for.
///   - roundTrip: asks the server for something that it answers although it holds the peer back.
/// - Returns: the number.
func standstill(
  of count: () -> Int, below end: Int = .max, roundTrips: Int = 300, _ roundTrip: () async throws -> Void
) async throws -> Int {
  var last = count()
  var quiet = 0
  let deadline = ContinuousClock.now + .seconds(120)
  while quiet < roundTrips, last < end {
    guard ContinuousClock.now < deadline else { throw DeadlinePassed() }
    try await roundTrip()
    let now = count()
    quiet = now == last ? quiet + 1 : 0
    last = now
  }
  return last
}
