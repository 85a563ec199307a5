// Opens the store that a configuration names.

import EmbeddedStore
import Logging
import OrderedStore

extension HearthConfiguration.Storage {
  /// Opens the store. A data directory stays locked by this process until the store is closed.
  /// - Throws: ``HearthError`` with advice. For a locked directory the message names the process that has it
  ///   open.
  func open(log: Logger) async throws(HearthError) -> any OrderedStore {
    try Self.checkAddressSpace()
    let options = StoreOptions(report: { log.error("\($0)") })
    do {
      switch self {
      case .ephemeral: return try MemoryStore(options)
      case .directory(let path):
        return try await EmbeddedStore.open(directory: path, EmbeddedOptions(store: options))
      }
    } catch let error as StoreError where error.code == .locked {
      throw HearthError("\(error.message). Stop the other one, or choose another directory with --data.")
    } catch {
      throw HearthError("The store cannot be opened: \(error). Choose another directory with --data.")
    }
  }

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
