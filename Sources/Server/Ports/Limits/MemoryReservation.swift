// The bytes of the memory budget that one connection holds, reserved in steps.
//
// Each connection has an allowance: bytes that it may hold without reserving them in the budget.
//
// Invariant: a reservation reserves only bytes above its allowance, in steps of 64 KiB. Small requests on many threads
// therefore do not contend for the budget's lock.

package import NIOCore

/// The bytes of the budget that one connection holds. Confined to its event loop.
package final class MemoryReservation {
  package let budget: MemoryBudget
  /// The connection in the budget. Other reservations of the connection use it too.
  package let holder: MemoryHolder
  private let allowance: Int
  /// The bytes that the connection holds, its allowance included.
  private(set) var held = 0
  /// The bytes reserved in the budget: `held` beyond the allowance, rounded up to complete steps.
  private var reserved = 0

  /// Bytes that are reserved and released together.
  private static let step = 64 << 10

  /// - Parameters:
  ///   - holder: the connection in the budget; nil for one that the server does not close to free its memory.
  ///   - allowance: maximum bytes held without a reservation; limited to `PortLimits.allowanceBytes`.
  package init(_ limits: PortLimits, _ holder: MemoryHolder? = nil, allowance: Int = .max) {
    budget = limits.memory
    self.holder = holder ?? MemoryHolder(limits.memory, address: "", closing: nil)
    self.allowance = min(allowance, limits.allowanceBytes)
  }

  /// Creates the reservation of a connection.
  package convenience init(_ limits: PortLimits, of channel: any Channel) {
    self.init(limits, MemoryHolder(limits.memory, channel))
  }

  deinit {
    if reserved > 0 { holder.release(reserved) }
  }

  /// Holds `bytes` more. Returns false, and holds nothing, if the budget has no capacity.
  /// - Parameter leavingRoom: whether the last quarter of the budget is left to others. For further streams and responses of
  ///   a connection that already has some.
  package func reserve(_ bytes: Int, leavingRoom: Bool = false) -> Bool {
    let more = needed(for: held + bytes) - reserved
    if more > 0 {
      guard leavingRoom ? holder.reserveResults(more) : holder.reserve(more) else { return false }
      reserved += more
    }
    held += bytes
    return true
  }

  /// Whether `reserve` would succeed now. May close other connections to make room.
  func hasRoom(for bytes: Int) -> Bool {
    let more = needed(for: held + bytes) - reserved
    return more <= 0 || holder.makeRoom(for: more)
  }

  /// Holds `bytes` more even beyond the limit: for responses that report completed work.
  package func reserveUnchecked(_ bytes: Int) {
    held += bytes
    let more = needed(for: held) - reserved
    guard more > 0 else { return }
    holder.reserveUnchecked(more)
    reserved += more
  }

  /// Releases `bytes` of the held bytes.
  package func release(_ bytes: Int) {
    precondition(bytes <= held, "invariant: a connection releases no more memory than it holds")
    held -= bytes
    let needed = needed(for: held)
    // Keeps one spare step while any is in use: the next request is likely to need it.
    guard reserved - needed > Self.step || (needed == 0 && reserved > 0) else { return }
    holder.release(reserved - needed)
    reserved = needed
  }

  /// Changes one part of the held bytes from `old` to `new`. Returns false, and changes nothing, if the budget has no
  /// capacity for the growth.
  /// - Parameter leavingRoom: as in `reserve`.
  package func resize(from old: Int, to new: Int, leavingRoom: Bool = false) -> Bool {
    if new > old { return reserve(new - old, leavingRoom: leavingRoom) }
    if new < old { release(old - new) }
    return true
  }

  private func needed(for bytes: Int) -> Int {
    bytes <= allowance ? 0 : (bytes - allowance + Self.step - 1) / Self.step * Self.step
  }
}
