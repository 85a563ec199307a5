// A store that counts the rows read, so that tests check costs instead of times. It also rejects commits on
// request.

import Locking
import OrderedStore

@testable import FirestoreEngine

/// Counts the rows that lookups and scans read, in all databases of a store.
final class CountingStore: OrderedStore {
  private let base: any OrderedStore
  private let rows = Guarded(0)
  private let largest = Guarded(0)
  private let countAction = Guarded<(rows: Int, action: @Sendable () -> Void)?>(nil)

  private let rejections = Guarded((left: 0, after: 0))

  init(_ base: any OrderedStore) { self.base = base }

  /// Rejects the next `count` commits, as an overloaded store does.
  /// - Parameter after: The number of commits that succeed before the first rejection.
  func rejectCommits(_ count: Int, after: Int = 0) { rejections.withLock { $0 = (count, after) } }

  fileprivate func rejectsNext() -> Bool {
    rejections.withLock { rejections in
      if rejections.after > 0 {
        rejections.after -= 1
        return false
      }
      guard rejections.left > 0 else { return false }
      rejections.left -= 1
      return true
    }
  }

  /// Returns and clears the count of rows read.
  func takeCount() -> Int {
    rows.withLock { rows in
      defer { rows = 0 }
      return rows
    }
  }

  /// Returns and clears the largest number of rows in one read.
  func takeLargest() -> Int {
    largest.withLock { largest in
      defer { largest = 0 }
      return largest
    }
  }

  /// Runs an action once, as soon as the count reaches `rows`.
  func runOnce(afterRows rows: Int, _ action: @escaping @Sendable () -> Void) {
    countAction.withLock { $0 = (rows, action) }
  }

  fileprivate func record(_ count: Int) {
    let sum = rows.withLock { rows in
      rows += count
      return rows
    }
    largest.withLock { $0 = max($0, count) }
    let action = countAction.withLock { countAction -> (@Sendable () -> Void)? in
      guard let due = countAction, due.rows <= sum else { return nil }
      countAction = nil
      return due.action
    }
    action?()
  }

  func database(named name: String, history: HistoryWindow) async throws -> any OrderedDatabase {
    CountingDatabase(try await base.database(named: name, history: history), self)
  }

  func provisionalDatabase(
    named name: String, history: HistoryWindow
  ) async throws -> any OrderedDatabase {
    CountingDatabase(try await base.provisionalDatabase(named: name, history: history), self)
  }

  func databaseExists(named name: String) async throws -> Bool { try await base.databaseExists(named: name) }
  func databaseNames() async throws -> [String] { try await base.databaseNames() }
  func removeDatabase(named name: String) async throws { try await base.removeDatabase(named: name) }
  func close() async throws { try await base.close() }
}

private final class CountingDatabase: OrderedDatabase {
  private let base: any OrderedDatabase
  private let store: CountingStore

  init(_ base: any OrderedDatabase, _ store: CountingStore) {
    self.base = base
    self.store = store
  }

  var name: String { base.name }
  var latestVersion: Version { base.latestVersion }
  var createdVersion: Version { base.createdVersion }

  func setFirstRows(_ write: @escaping @Sendable (any SequencedTransaction) throws -> Void) {
    base.setFirstRows(write)
  }

  func read<Result: Sendable>(
    at version: Version?, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    try await base.read(at: version) { [store] view in
      let counting = CountingView(view)
      defer { store.record(counting.visited + counting.lookedUp) }
      return try body(counting)
    }
  }

  func pinView() throws -> any PinnedView { try base.pinView() }

  func execute<Result: Sendable>(
    validating reads: ReadSet?, _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result,
    completion: @escaping @Sendable (Swift.Result<Committed<Result>, any Error>) -> Void
  ) {
    if store.rejectsNext() { return completion(.failure(StoreError.unavailable("too many calls wait"))) }
    base.execute(validating: reads, body, completion: completion)
  }

  func reserveVersion() async throws -> Version { try await base.reserveVersion() }

  func latestVersion(within age: UInt64) -> Version? { base.latestVersion(within: age) }

  func recentVersion(within age: UInt64) async throws -> Version {
    try await base.recentVersion(within: age)
  }

  func log(after version: Version, limit: Int) async throws -> [LogRecord] {
    try await base.log(after: version, limit: limit)
  }

  func follow(_ deliver: @escaping @Sendable (LogRecord) -> Void) -> any LogSubscription {
    base.follow(deliver)
  }
}

/// Counts lookups, rows visited, and the keys that a scan skips because they have no value at the view's version.
final class CountingView: ReadView {
  private let view: any ReadView
  /// Rows that scans visited, and rows looked up by key.
  private(set) var visited = 0
  private(set) var lookedUp = 0

  init(_ view: any ReadView) { self.view = view }

  var version: Version { view.version }

  func get(_ key: Key) throws -> VersionedValue? {
    lookedUp += 1
    return try view.get(key)
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) throws {
    try view.scan(range, reverse: reverse) { key, value, version in
      visited += 1
      return try visit(key, value, version)
    }
  }

  func scan(
    _ range: KeyRange, reverse: Bool, maximumHidden limit: Int,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) throws -> HiddenKeys {
    let skipped = try view.scan(range, reverse: reverse, maximumHidden: limit) { key, value, version in
      visited += 1
      return try visit(key, value, version)
    }
    visited += skipped.count
    return skipped
  }
}
