// Where a database's rows are: nowhere, until something that was allowed is to be written. Names that nobody may
// write to, or that are only asked for, leave nothing behind, neither on disk nor in the catalogue.

import Locking
import OrderedStore

/// A database's place in the store, made when it is first needed.
final class DatabaseRows: Sendable {
  /// Its name in the catalogue.
  let name: String
  private let store: any OrderedStore
  private let opened: Guarded<(any OrderedDatabase)?>
  private let now: @Sendable () -> Int64

  /// Finds a database, without making it.
  ///
  /// - Parameters:
  ///   - name: its name in the catalogue.
  ///   - now: the clock of views of a database that is not there, in milliseconds since the Unix epoch.
  init(named name: String, in store: any OrderedStore, now: @escaping @Sendable () -> Int64) async throws {
    self.name = name
    self.store = store
    self.now = now
    let exists = try await store.databaseExists(named: name)
    opened = Guarded(exists ? try await store.database(named: name, history: .activeReadersOnly) : nil)
  }

  /// The rows; nil while nothing was ever written.
  var current: (any OrderedDatabase)? { opened.withLock { $0 } }

  /// Makes the rows, if there are none yet.
  func create() async throws -> any OrderedDatabase {
    if let current { return current }
    let rows = try await store.database(named: name, history: .activeReadersOnly)
    opened.withLock { $0 = rows }
    return rows
  }

  /// What a database shows that was never written to.
  var emptyView: any ReadView & Sendable {
    EmptyView(version: Version(microseconds: UInt64(max(0, now())) * 1000))
  }
}

/// A view without rows.
private struct EmptyView: ReadView, Sendable {
  let version: Version

  func get(_ key: [UInt8]) -> VersionedValue? { nil }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) {}
}
