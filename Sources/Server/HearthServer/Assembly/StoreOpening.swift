// Opens the store that a configuration names.

import EmbeddedStore
import Logging
import OrderedStore

extension HearthConfiguration.Storage {
  /// The store; one in a directory is held by this process until it is closed.
  /// - Throws: ``HearthError`` that says what to change: for a directory in use, who holds it.
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
