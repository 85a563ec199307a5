// Performs the onDisconnect writes of ended sessions that waited for rules, once rules are published.
//
// A server without rules can neither allow nor deny the writes of a user. The writes stay in their rows, even across
// restarts.

import Access
import Locking
import OrderedStore

/// Whether ended sessions of a database wait for rules.
final class WaitingSessions: Sendable {
  private let isWaiting = Guarded(false)

  /// Records that a session waits.
  func add() { isWaiting.withLock { $0 = true } }

  /// Submits the operations that perform the writes of the waiting sessions. Called when a policy that decides these
  /// writes is in force. A session whose writes have to wait again is added again.
  ///
  /// - Parameter hasEnded: whether a session has no open connection.
  func performWrites(
    _ queue: OperationQueue, _ rows: DatabaseRows, hasEnded: @escaping @Sendable (String) -> Bool
  ) {
    let wasWaiting = isWaiting.withLock { isWaiting in
      defer { isWaiting = false }
      return isWaiting
    }
    guard wasWaiting else { return }
    Task {
      do {
        // The rows of a session that has just ended may still be in flight.
        try await queue.barrier()
        let sessions = try await rows.current?.read(at: nil) { try DisconnectRows.sessions(in: $0) } ?? []
        for session in sessions where hasEnded(session) {
          _ = queue.append(
            RealtimeOperation(
              .takeOver(session: session, of: nil), from: .call(.administrator) { _ in }))
        }
      } catch {
        // The store cannot be read. The rows stay, and the next policy or the next start finds them.
        add()
      }
    }
  }
}
