// One budget of bytes for everything that all connections make the server hold: incomplete and unanswered requests, and
// unread responses. It complements the limits of single connections.
//
// Invariants
//   1. Reserved bytes stay within the limit, except for responses that report completed work (`reserveUnchecked`).
//   2. A reservation releases everything at the end of its connection, at the latest.
//   3. A connection reserves nothing in the budget for bytes within its allowance, and reserves more in steps of 64
//      KiB. So small requests on many threads do not contend for the budget's lock.

import NIOConcurrencyHelpers

/// The bytes that all connections of a server may hold together.
package final class MemoryBudget: Sendable {
  /// Maximum number of bytes, in addition to each connection's allowance.
  package let limit: Int
  private let reserved = NIOLockedValueBox(0)

  /// Creates a budget of `limit` bytes.
  package init(limit: Int) {
    self.limit = limit
  }

  /// The number of reserved bytes.
  package var used: Int { reserved.withLockedValue { $0 } }

  fileprivate func reserve(_ bytes: Int) -> Bool {
    reserved.withLockedValue { reserved in
      guard reserved + bytes <= limit else { return false }
      reserved += bytes
      return true
    }
  }

  fileprivate func reserveUnchecked(_ bytes: Int) { reserved.withLockedValue { $0 += bytes } }

  fileprivate func release(_ bytes: Int) {
    let remaining = reserved.withLockedValue { reserved in
      reserved -= bytes
      return reserved
    }
    precondition(remaining >= 0, "invariant: a memory budget releases no more than it reserved")
  }

  /// The error text for a client whose request does not fit.
  package var refusal: String {
    "The server holds as many bytes of requests and answers as it may, \(limit) in all. Try again later."
  }
}

/// The bytes of the budget that one connection holds. Confined to its event loop.
package final class MemoryReservation {
  package let memory: MemoryBudget
  private let allowance: Int
  /// The bytes that the connection holds, its allowance included.
  private(set) var held = 0
  /// The bytes reserved in the budget: `held` beyond the allowance, rounded up to complete steps.
  private var reserved = 0

  /// Bytes that are reserved and released together.
  private static let step = 64 << 10

  /// - Parameter allowance: maximum bytes held without a reservation; limited to `PortLimits.allowanceBytes`.
  package init(_ limits: PortLimits, allowance: Int = .max) {
    memory = limits.memory
    self.allowance = min(allowance, limits.allowanceBytes)
  }

  deinit {
    if reserved > 0 { memory.release(reserved) }
  }

  /// Holds `bytes` more. Returns false, and holds nothing, if the budget has no capacity.
  package func reserve(_ bytes: Int) -> Bool {
    let more = needed(for: held + bytes) - reserved
    if more > 0 {
      guard memory.reserve(more) else { return false }
      reserved += more
    }
    held += bytes
    return true
  }

  /// Whether `reserve` would succeed now.
  func hasRoom(for bytes: Int) -> Bool {
    let more = needed(for: held + bytes) - reserved
    return more <= 0 || memory.used + more <= memory.limit
  }

  /// Holds `bytes` more even beyond the limit: for responses that report completed work.
  package func reserveUnchecked(_ bytes: Int) {
    held += bytes
    let more = needed(for: held) - reserved
    guard more > 0 else { return }
    memory.reserveUnchecked(more)
    reserved += more
  }

  /// Holds `bytes` less.
  package func release(_ bytes: Int) {
    precondition(bytes <= held, "invariant: a connection releases no more memory than it holds")
    held -= bytes
    let needed = needed(for: held)
    // Keeps one spare step while any is in use: the next request is likely to need it.
    guard reserved - needed > Self.step || (needed == 0 && reserved > 0) else { return }
    memory.release(reserved - needed)
    reserved = needed
  }

  /// Changes one part of the held bytes from `old` to `new`. Returns false, and changes nothing, if the budget has no
  /// capacity for the growth.
  package func resize(from old: Int, to new: Int) -> Bool {
    if new > old { return reserve(new - old) }
    if new < old { release(old - new) }
    return true
  }

  private func needed(for bytes: Int) -> Int {
    bytes <= allowance ? 0 : (bytes - allowance + Self.step - 1) / Self.step * Self.step
  }
}
