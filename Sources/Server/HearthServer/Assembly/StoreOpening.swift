// Opens the store that a configuration names.

import EmbeddedStore
import Logging
import OrderedStore

extension HearthConfiguration.Storage {
  /// Opens the store. A data directory stays locked by this process until the store is closed.
  /// - Throws: ``HearthError`` with advice. For a locked directory the message names the process that has it
  ///   open.
  func open(acceptsClockJump: Bool, log: Logger) async throws(HearthError) -> any OrderedStore {
    try Self.checkAddressSpace()
    var options = StoreOptions(report: { log.error("\($0)") })
    guard options.clock.now() >= Self.minimumTime else {
      throw HearthError(
        "The system's clock reads a time before 2020. Set it: versions and server timestamps follow it.")
    }
    if !acceptsClockJump { options.maximumClockLead = Self.maximumIdleTime }
    do {
      switch self {
      case .ephemeral: return try MemoryStore(options)
      case .directory(let path):
        return try await EmbeddedStore.open(directory: path, EmbeddedOptions(store: options))
      }
    } catch let error as StoreError where error.code == .locked {
      throw HearthError("\(error.message). Stop the other one, or choose another directory with --data.")
    } catch let error as StoreError where error.code == .clockAhead {
      throw HearthError(
        "\(error.message). Versions never decrease, so a wrong clock would spoil this data for good. If the clock is right "
          + "because the server did not run for so long, start it once with --accept-clock.")
    } catch {
      throw HearthError("The store cannot be opened: \(error). Choose another directory with --data.")
    }
  }

  /// 2020-01-01T00:00:00Z in microseconds since 1970. RocksDB fails on times before 1970.
  private static let minimumTime: UInt64 = 1_577_836_800_000_000
  /// The time that a server may be stopped before its clock must be confirmed, in microseconds: a year.
  /// Smaller errors of the clock are accepted: after the clock is corrected, versions rise by 1 µs per commit until it has
  /// caught up.
  private static let maximumIdleTime: UInt64 = 366 * 86_400_000_000
  /// The address space that a server needs, in bytes. A start alone takes about 0.9 GiB.
  private static let minimumAddressSpace = 2 << 30

  /// Checks the limit of the address space. RocksDB ends the process without a message when it is exhausted.
  private static func checkAddressSpace() throws(HearthError) {
    guard let limit = SystemMemory.addressSpaceLimit, limit < minimumAddressSpace else { return }
    throw HearthError(
      "The address space of this process is limited to \(limit >> 20) MiB, and the server needs "
        + "\(minimumAddressSpace >> 20) MiB. Raise the limit (ulimit -v), or limit memory by a control group instead."
    )
  }
}
