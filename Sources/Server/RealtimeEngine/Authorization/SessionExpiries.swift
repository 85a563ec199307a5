// Orders the sessions of a database by the expiry of their callers' credentials.
//
// If a caller authenticates again with a later expiry, its entry stays. When that entry is due, an entry with the
// later expiry replaces it.
//
// Invariant: a connection whose caller's credentials expire has one valid entry. The expiry of that entry equals the
// session's `scheduledExpiry`, and is not later than the caller's expiry. So authenticating again adds an entry only
// if the new credentials expire earlier.

import Access

/// The expiries of the callers of open connections.
///
/// `@unchecked Sendable`: only batches, which execute one at a time, and the batch loop between them access it.
final class SessionExpiries: @unchecked Sendable {
  private struct Entry {
    let expiry: Int64
    weak var connection: ConnectionState?
  }

  /// A binary heap with the earliest expiry first.
  private var heap: [Entry] = []
  private let scheduled: @Sendable (_ seconds: Int64) -> Void

  /// - Parameter scheduled: called with the earliest expiry, in seconds since 1970, when it changes.
  init(scheduled: @escaping @Sendable (_ seconds: Int64) -> Void) { self.scheduled = scheduled }

  /// Adds the caller of a connection, if its credentials expire.
  func add(_ connection: ConnectionState) {
    guard let expiry = connection.session.caller.expiry else { return }
    if let known = connection.session.scheduledExpiry, known <= expiry { return }
    insert(Entry(expiry: expiry, connection: connection))
  }

  /// Removes the next caller that has expired, and returns its connection; nil if no caller has expired.
  ///
  /// - Parameter time: the current time in microseconds since 1970.
  func next(at time: Int64, _ journal: SessionJournal) -> ConnectionState? {
    while let first = heap.first, first.expiry <= time / 1_000_000 {
      removeFirst()
      guard let connection = first.connection, connection.session.scheduledExpiry == first.expiry else {
        continue
      }
      precondition(
        connection.session.caller.expiry.map { first.expiry <= $0 } ?? true,
        "invariant: a connection is scheduled no later than its caller's credentials expire")
      connection.session.scheduledExpiry = nil
      journal.record { self.insert(first) }
      if connection.session.caller.hasExpired(at: time) { return connection }
      add(connection)
    }
    return nil
  }

  private func insert(_ entry: Entry) {
    var index = heap.count
    heap.append(entry)
    entry.connection?.session.scheduledExpiry = entry.expiry
    while index > 0, heap[index].expiry < heap[(index - 1) / 2].expiry {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
    if index == 0 { scheduled(entry.expiry) }
  }

  private func removeFirst() {
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < heap.count {
        if heap[child].expiry < heap[least].expiry { least = child }
      }
      if least == index { break }
      heap.swapAt(index, least)
      index = least
    }
    if let first = heap.first { scheduled(first.expiry) }
  }
}
