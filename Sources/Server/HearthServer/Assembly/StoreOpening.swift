// Opens the store that a configuration names.

import EmbeddedStore
import Logging
import OrderedStore

extension HearthConfiguration.Storage {
  /// Opens the store. A data directory stays locked by this process until the store is closed.
  /// - Throws: ``HearthError`` with advice. For a locked directory the message names the process that has it
  ///   open.
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
