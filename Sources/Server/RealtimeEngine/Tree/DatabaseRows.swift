// Opens the rows of a database in the store, and creates them with the first permitted write.
//
// A database that clients only read, or whose writes are all rejected, takes no space on disk or in the
// catalogue.

import Locking
import OrderedStore

/// The rows of one database, created on first use.
final class DatabaseRows: Sendable {
  /// The name in the catalogue.
  let name: String
  private let store: any OrderedStore
  private let opened: Guarded<(any OrderedDatabase)?>
  private let now: @Sendable () -> Int64

  /// Looks up a database without creating it.
  ///
  /// - Parameters:
  ///   - name: the name in the catalogue.
  ///   - now: the clock for views of a missing database, in milliseconds since the Unix epoch.
  init(named name: String, in store: any OrderedStore, now: @escaping @Sendable () -> Int64) async throws {
    self.name = name
    self.store = store
    self.now = now
    let exists = try await store.databaseExists(named: name)
    opened = Guarded(exists ? try await store.database(named: name, history: .activeReadersOnly) : nil)
  }

  /// The rows; nil until the first write.
  var current: (any OrderedDatabase)? { opened.withLock { $0 } }

  /// Returns the rows, and creates them if they do not exist.
  func create() async throws -> any OrderedDatabase {
    if let current { return current }
    let rows = try await store.database(named: name, history: .activeReadersOnly)
    opened.withLock { $0 = rows }
    return rows
  }

  /// The view of a database without rows.
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
