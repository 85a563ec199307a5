// Assigns the numbers of databases. A provisional database is open, but has no commit yet. If it is released without a
// commit, its number is assigned again, so that requests for unknown names do not use up the numbers.
//
// Invariant: `next` is above every number that was assigned, so it is stored with each new database.

import Locking

/// The numbers of the databases of one store.
final class DatabaseNumbers: Sendable {
  private struct State {
    var next: DatabaseNumber
    var unused: [DatabaseNumber] = []
  }

  private let state: Guarded<State>

  /// - Parameter next: the lowest number that no database has ever had.
  init(next: DatabaseNumber) { state = Guarded(State(next: next)) }

  /// The lowest number that was never assigned.
  var next: DatabaseNumber { state.withLock { $0.next } }

  /// Assigns a number that no stored row has.
  func assign() -> DatabaseNumber {
    state.withLock { state in
      if let number = state.unused.popLast() { return number }
      defer { state.next += 1 }
      return state.next
    }
  }

  /// Makes the number of a database without stored rows available again.
  func release(_ number: DatabaseNumber) { state.withLock { $0.unused.append(number) } }
}
