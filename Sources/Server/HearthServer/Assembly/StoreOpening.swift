// Opens the store of a configuration.

import EmbeddedStore
import Logging
import OrderedStore

extension HearthConfiguration.Storage {
  /// Opens the store. The process holds a data directory until the store is closed.
  /// - Throws: ``HearthError`` with advice; for a directory in use, with its owner.
  func open(log: Logger) async throws(HearthError) -> any OrderedStore {
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
}
