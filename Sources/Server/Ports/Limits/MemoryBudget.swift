// One budget of bytes for everything that all connections make the server hold: incomplete and unanswered requests, results
// that are being sent, and unread responses. It complements the limits of single connections.
//
// A peer that does not read must not cause the rejection of other peers. When the budget is full, the server therefore
// closes the connection that holds most, and grants its bytes to the new request. `MemoryHolders` chooses the
// connection.
//
// Invariants
//   1. Reserved bytes stay within the limit, except for responses that report completed work (`reserveUnchecked`) and for
//      results that turn out larger than the stream's reservation (`PageMemory.resize`).
//   2. A holder releases everything at the end of its connection, at the latest. If the server closes a connection to
//      free memory, the connection's bytes are released immediately.
//
// Decision: docs/decisions/0031-shares-of-memory.md

import NIOConcurrencyHelpers
package import NIOCore

/// The bytes that all connections of a server may hold together.
package final class MemoryBudget: Sendable {
  /// Maximum number of reserved bytes. Each connection may hold its allowance without a reservation.
  package let limit: Int
  private let minimumAge: TimeAmount
  private let holders = NIOLockedValueBox(MemoryHolders())

  /// Creates a budget.
  /// - Parameters:
  ///   - limit: maximum number of bytes.
  ///   - minimumAge: a connection that has held its bytes for less than this time is not closed to free memory. A
  ///     connection whose client reads releases its bytes in this time.
  package init(limit: Int, minimumAge: TimeAmount = .milliseconds(500)) {
    self.limit = limit
    self.minimumAge = minimumAge
  }

  /// The number of reserved bytes.
  package var used: Int { holders.withLockedValue { $0.bytes } }

  /// The bytes that the results of one connection's streams may hold together: an eighth of the budget, at most 64 MiB.
  package var connectionShare: Int { min(limit / 8, 64 << 20) }

  /// The bytes up to which query results may fill the budget. The remaining quarter is for requests and for the first
  /// streams and the first response of each connection. They find room there even before the server may close a connection
  /// that holds much.
  fileprivate var resultLimit: Int { limit / 4 * 3 }

  /// The bytes of open streams up to which one connection may open more of them in the last quarter of the budget. 128
  /// connections do not fill it.
  package var connectionStreamBytes: Int { (limit - resultLimit) / 128 }

  /// The error text for a client whose request does not fit.
  package var refusal: String {
    "The bytes of requests and answers are limited to \(limit) in all, and too few are free for this one. Try again later."
  }

  /// Reserves bytes for a holder, and closes the connections that hold most if that frees enough. Returns
  /// false on a full budget.
  fileprivate func reserve(_ bytes: Int, for holder: MemoryHolder, within limit: Int) -> Bool {
    makeRoom(for: bytes, of: holder, within: limit) { $0.add(bytes, to: holder) }
  }

  /// Makes room for bytes without reserving them. Returns false on a full budget.
  fileprivate func makeRoom(for bytes: Int, of holder: MemoryHolder) -> Bool {
    makeRoom(for: bytes, of: holder, within: limit) { _ in }
  }

  private func makeRoom(
    for bytes: Int, of holder: MemoryHolder, within limit: Int, then body: (inout MemoryHolders) -> Void
  ) -> Bool {
    var closing: [@Sendable () -> Void] = []
    let hasRoom = holders.withLockedValue { holders in
      if holders.isClosed(holder) { return false }
      var missing = holders.bytes + bytes - limit
      // If others already use more than results may, results replace results and free no more.
      if limit < self.limit { missing = min(missing, bytes) }
      if missing > 0 {
        guard let chosen = holders.close(toFree: missing, for: holder, bytes, minimumAge: minimumAge) else {
          return false
        }
        closing = chosen
      }
      body(&holders)
      return true
    }
    for close in closing { close() }
    return hasRoom
  }

  fileprivate func reserveUnchecked(_ bytes: Int, for holder: MemoryHolder) {
    holders.withLockedValue { $0.add(bytes, to: holder) }
  }

  fileprivate func release(_ bytes: Int, of holder: MemoryHolder) {
    holders.withLockedValue { $0.remove(bytes, from: holder) }
  }

  fileprivate func end(_ id: ObjectIdentifier) {
    holders.withLockedValue { $0.end(id) }
  }
}

/// One connection or session that holds bytes of a budget.
package final class MemoryHolder: Sendable {
  /// The peer's address, without its port; empty if unknown.
  let address: String
  /// Closes the connection; nil if the server must not close it to free memory.
  let closing: (@Sendable () -> Void)?
  private let budget: MemoryBudget

  /// - Parameters:
  ///   - address: the peer's address, without its port; empty if unknown.
  ///   - closing: closes the connection, from any thread; nil if the server must not close it to free memory. It must not
  ///     retain the connection.
  package init(_ budget: MemoryBudget, address: String, closing: (@Sendable () -> Void)?) {
    self.budget = budget
    self.address = address
    self.closing = closing
  }

  /// Creates the holder of a connection.
  package convenience init(_ budget: MemoryBudget, _ channel: any Channel) {
    self.init(budget, address: channel.remoteAddress?.ipAddress ?? "") { [weak channel] in
      guard let channel else { return }
      channel.eventLoop.execute { channel.disconnect() }
    }
  }

  deinit { budget.end(ObjectIdentifier(self)) }

  /// Reserves bytes. Returns false, and reserves nothing, on a full budget.
  func reserve(_ bytes: Int) -> Bool { budget.reserve(bytes, for: self, within: budget.limit) }

  /// Reserves bytes of results, which leave a part of the budget to other requests. Returns false, and reserves nothing, if
  /// results already fill their part of the budget.
  func reserveResults(_ bytes: Int) -> Bool { budget.reserve(bytes, for: self, within: budget.resultLimit) }

  /// Makes room for bytes without reserving them. Returns false on a full budget.
  func makeRoom(for bytes: Int) -> Bool { budget.makeRoom(for: bytes, of: self) }

  /// Reserves bytes even beyond the limit.
  func reserveUnchecked(_ bytes: Int) { budget.reserveUnchecked(bytes, for: self) }

  /// Releases reserved bytes.
  func release(_ bytes: Int) { budget.release(bytes, of: self) }
}
