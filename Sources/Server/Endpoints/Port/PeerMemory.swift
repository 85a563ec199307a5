// One budget of bytes for everything that all peers together make the server hold: requests that have not arrived whole
// or are not answered yet, and answers that wait to be read. The limits of single connections stand beside it.
//
// Invariants
//   1. Taken bytes stay within the limit, but for answers to what has been done already.
//   2. An account gives back what it took, at the latest when its connection is gone.
//   3. What a connection holds within its allowance never comes here, and beyond it whole steps are taken: small requests
//      of many threads do not meet at one lock.

import NIOConcurrencyHelpers

/// The bytes that the connections of a server may hold together.
public final class MemoryBudget: Sendable {
  /// The most bytes, beside every connection's allowance.
  public let limit: Int
  private let taken = NIOLockedValueBox(0)

  /// Makes a budget of so many bytes.
  public init(limit: Int) {
    self.limit = limit
  }

  /// The bytes that are taken now.
  public var used: Int { taken.withLockedValue { $0 } }

  fileprivate func take(_ bytes: Int) -> Bool {
    taken.withLockedValue { taken in
      guard taken + bytes <= limit else { return false }
      taken += bytes
      return true
    }
  }

  fileprivate func takeAnyway(_ bytes: Int) { taken.withLockedValue { $0 += bytes } }

  fileprivate func give(_ bytes: Int) { taken.withLockedValue { $0 -= bytes } }

  /// What a peer is told whose request finds no room.
  var refusal: String {
    "The server holds as many bytes of requests and answers as it may, \(limit) in all. Try again later."
  }
}

/// What one connection holds of the budget. Confined to its event loop.
final class MemoryReservation {
  let memory: MemoryBudget
  private let allowance: Int
  /// The bytes that it holds now.
  private(set) var held = 0
  private var taken = 0

  /// What is taken and given back at once.
  private static let step = 64 << 10

  /// - Parameter allowance: what it may hold without taking from the budget, if that is less than a connection may.
  init(_ limits: PortLimits, allowance: Int = .max) {
    memory = limits.memory
    self.allowance = min(allowance, limits.freeBytes)
  }

  deinit {
    if taken > 0 { memory.give(taken) }
  }

  /// Holds more bytes; false, and nothing is held, if the budget has no room for them.
  func take(_ bytes: Int) -> Bool {
    let more = needed(for: held + bytes) - taken
    if more > 0 {
      guard memory.take(more) else { return false }
      taken += more
    }
    held += bytes
    return true
  }

  /// Whether there is room for more bytes now.
  func hasRoom(for bytes: Int) -> Bool {
    let more = needed(for: held + bytes) - taken
    return more <= 0 || memory.used + more <= memory.limit
  }

  /// Holds more bytes whether there is room or not: of answers that say what has been done.
  func takeAnyway(_ bytes: Int) {
    held += bytes
    let more = needed(for: held) - taken
    guard more > 0 else { return }
    memory.takeAnyway(more)
    taken += more
  }

  /// Holds bytes no more.
  func give(_ bytes: Int) {
    held -= bytes
    let needed = needed(for: held)
    // One step is kept while there is use for any, since the next request is likely to want it again.
    guard taken - needed > Self.step || (needed == 0 && taken > 0) else { return }
    memory.give(taken - needed)
    taken = needed
  }

  /// Holds `new` bytes instead of `old`; false, and nothing changes, if there is no room for more.
  func hold(_ new: Int, insteadOf old: Int) -> Bool {
    if new > old { return take(new - old) }
    if new < old { give(old - new) }
    return true
  }

  private func needed(for bytes: Int) -> Int {
    bytes <= allowance ? 0 : (bytes - allowance + Self.step - 1) / Self.step * Self.step
  }
}
