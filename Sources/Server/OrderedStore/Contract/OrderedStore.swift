// The contract of an ordered store: serializable transactions over ordered keys, and one commit log per
// database. The transactions follow FoundationDB (Zhou et al., SIGMOD 2021). In addition, `execute` runs a
// read-modify-write inside the store.
//
// A database has a commit sequencer, which runs the callers' closures (bodies) one at a time and assigns
// versions. A commit is in flight from its body's end until it is durable.
//
// Invariants
//   1. A commit is visible to `read`, `log` and `latestVersion` only after it is durable.
//   2. Versions of one database strictly increase, also across restarts and clock setbacks.
//   3. A read at version v sees exactly the commits with version <= v.
//   4. A commit fails with a conflict if any of its recorded reads has changed since it was read.

/// An ordered key: bytes compared as unsigned numbers, shorter prefix first. At most 32 KiB.
public typealias Key = [UInt8]

/// A stored value. At most 16 MiB.
public typealias StoredValue = [UInt8]

/// A store of ordered databases, in one data directory or in the memory of one process.
public protocol OrderedStore: Sendable {
  /// Opens a database by its name in the catalogue. A new database gets the next number.
  ///
  /// - Parameters:
  ///   - name: the full name, at most 1,024 bytes of UTF-8: `firestore/projects/P/databases/D` or `realtime/NS`.
  ///   - history: the time that overwritten rows stay readable at older versions.
  /// - Throws: ``StoreError``.
  func database(named name: String, history: HistoryWindow) async throws -> any OrderedDatabase

  /// Opens a database by its name. A missing database is empty, and its first commit adds it to the catalogue.
  ///
  /// Until then it takes no space on disk, and it is released with its last handle.
  /// - Parameters: as for ``database(named:history:)``.
  /// - Throws: ``StoreError``.
  func provisionalDatabase(named name: String, history: HistoryWindow) async throws -> any OrderedDatabase

  /// Whether the catalogue contains a database of this name. Costs one read, independent of the number of databases.
  func databaseExists(named name: String) async throws -> Bool

  /// The names of all databases in the catalogue, in ascending order of their UTF-8 bytes.
  func databaseNames() async throws -> [String]

  /// Removes every row, log record and version of a database from the catalogue and the disk.
  func removeDatabase(named name: String) async throws

  /// Makes every call in flight durable and releases the directory. Later calls throw ``StoreError``.
  func close() async throws
}

/// The time that a database retains overwritten rows, for reads in the past and for resume tokens.
public enum HistoryWindow: Sendable, Equatable {
  /// At least this number of seconds.
  case seconds(Int)
  /// Only as long as an open read needs them.
  case activeReadersOnly
}

/// One database of a store: an ordered map with history, a commit sequencer and a commit log.
public protocol OrderedDatabase: Sendable {
  /// The name in the catalogue.
  var name: String { get }

  /// The version of the newest durable commit or reservation.
  var latestVersion: Version { get }

  /// The version at which the database was created in the catalogue, or opened if it is not there yet.
  var createdVersion: Version { get }

  /// Sets the rows with which the database is created. `write` runs in the sequencer after the first body that writes a
  /// row or logs, as a part of its commit. No effect on a database that was in the catalogue when it was opened.
  func setFirstRows(_ write: @escaping @Sendable (any SequencedTransaction) throws -> Void)

  /// Reads a consistent view.
  ///
  /// `body` runs synchronously and may block. The store first runs it on the caller's thread. If a read there
  /// needs the disk or becomes long, the store runs `body` again from the start on a reader thread. `body`
  /// must therefore have no side effects.
  /// - Parameter version: the version to read at; nil for the newest durable state.
  /// - Throws: ``StoreError/versionTooOld`` below the history window, ``StoreError/versionInFuture`` above
  ///   ``latestVersion``, and any error of `body`.
  func read<Result: Sendable>(
    at version: Version?, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result

  /// Pins the newest durable state for reads that are too long for one call, such as an export to a slow client.
  ///
  /// Rows that are overwritten in the meantime occupy space until the view is released. Pin a view for
  /// minutes, not for days.
  /// - Throws: ``StoreError`` when the database is closed.
  func pinView() throws -> any PinnedView

  /// Runs a deterministic read-modify-write in the database's single sequencer.
  ///
  /// `body` sees every commit sequenced before it, durable or in flight. Calls that change the same key
  /// therefore neither conflict nor wait for each other's sync. Bodies run one at a time, in the order of the calls.
  /// Only the body of a call whose reads take long to validate may run after the bodies of later calls.
  /// `completion` runs after the commit is durable. A body that throws writes nothing.
  ///
  /// A body that neither writes nor logs makes no commit. `completion` then gets the version of the state
  /// that the body saw, after that state is durable. With ``SequencedTransaction/reserveCommitVersion()`` it
  /// gets a new version instead.
  /// - Parameters:
  ///   - reads: the caller's earlier reads; `body` runs only if none of the rows has changed since they were
  ///     read.
  ///   - body: reads and writes through its argument, which is valid during the call only.
  ///   - completion: called exactly once with the outcome. It is called on the publishing thread or on a sequencer
  ///     thread, or on the caller's thread if the call is rejected immediately. It must be quick and must not block.
  ///     Errors are ``StoreError/conflict``, ``StoreError/unavailable(_:)``, and any error of `body`.
  func execute<Result: Sendable>(
    validating reads: ReadSet?, _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result,
    completion: @escaping @Sendable (Swift.Result<Committed<Result>, any Error>) -> Void
  )

  /// Reserves a version above every commit so far and below every later commit, also across restarts.
  ///
  /// Use it for a read time that is sent to a client: no later commit can get a version at or below it.
  func reserveVersion() async throws -> Version

  /// ``latestVersion`` if it is at most `age` microseconds older than the clock; else nil.
  func latestVersion(within age: UInt64) -> Version?

  /// ``latestVersion`` if it is at most `age` microseconds older than the clock, else a version reserved now.
  ///
  /// Use it to read a state repeatedly over some time. On an idle database ``latestVersion`` may be so old
  /// that it soon leaves the history window.
  func recentVersion(within age: UInt64) async throws -> Version

  /// Returns at most `limit` commit records with a version above `version`, in order and without gaps.
  ///
  /// - Throws: ``StoreError/versionTooOld`` when records above `version` have been trimmed.
  func log(after version: Version, limit: Int) async throws -> [LogRecord]

  /// Registers a follower of the log.
  ///
  /// The store calls `deliver` once for each durable commit with a log record, in order, on the publishing thread. The call
  /// happens after the commit is durable and before its `execute` completes. `deliver` must be quick and must
  /// not block.
  /// - Returns: the subscription. Records up to its ``LogSubscription/startsAfter`` are in ``log(after:limit:)``.
  func follow(_ deliver: @escaping @Sendable (LogRecord) -> Void) -> any LogSubscription
}

extension OrderedDatabase {
  /// Runs a read-modify-write like ``execute(validating:_:completion:)`` and returns or throws its outcome.
  public func execute<Result: Sendable>(
    validating reads: ReadSet?, _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result
  ) async throws -> Committed<Result> {
    try await withCheckedThrowingContinuation { continuation in
      execute(validating: reads, body) { continuation.resume(with: $0) }
    }
  }
}

/// A pinned state of a database, readable until it is released.
public protocol PinnedView: Sendable {
  /// The version of the state.
  var version: Version { get }

  /// Reads the pinned state, like ``OrderedDatabase/read(at:_:)``.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result
}

/// A consistent view of a database at one version.
public protocol ReadView {
  /// The version of this view.
  var version: Version { get }

  /// The value of a key and the version that wrote it; nil if the key has no row.
  func get(_ key: Key) throws -> VersionedValue?

  /// Visits the rows of a range in order, until `visit` returns false or the range ends.
  ///
  /// The bytes passed to `visit` are valid during the call only.
  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) throws

  /// Visits rows like ``scan(_:reverse:_:)``, and also stops after `limit` hidden keys: keys without a row at
  /// this view's version.
  ///
  /// Only a view of the past has hidden keys. They were created after its version or deleted before it, and
  /// their history is not trimmed yet. Stepping over them takes time, which the limit bounds.
  /// - Returns: the number of keys without a row, and the key from which the caller can continue.
  func scan(
    _ range: KeyRange, reverse: Bool, maximumHidden limit: Int,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) throws -> HiddenKeys
}

extension ReadView {
  /// The default for a view without hidden keys: scans without a limit.
  public func scan(
    _ range: KeyRange, reverse: Bool, maximumHidden limit: Int,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) throws -> HiddenKeys {
    try scan(range, reverse: reverse, visit)
    return HiddenKeys()
  }
}

/// The keys that a scan stepped over because they have no row in its view.
public struct HiddenKeys: Sendable {
  /// The number of keys.
  public var count = 0
  /// The last scanned key if the scan stopped at its limit of hidden keys; nil if `visit` stopped the scan or the scan
  /// completed.
  public var last: Key?

  /// Makes a result with no hidden keys.
  public init() {}
}

/// The transaction that a sequenced body reads and writes: it sees all sequenced commits and its own writes.
public protocol SequencedTransaction: ReadView {
  /// The version of this commit: the clock, or 1 µs above the last version if that is higher. Equals
  /// `version` of the view.
  var commitVersion: Version { get }

  /// Writes a row.
  /// - Throws: ``StoreError/limitExceeded(_:)`` for a key above 32 KiB, a value above 16 MiB or a commit above 64 MiB.
  func set(_ key: Key, _ value: StoredValue) throws

  /// Writes a row under a key that the caller knows to have no row in this state.
  ///
  /// The store does not read the old row for history. If the caller is wrong, reads in the past lose the old value.
  /// A debug build reads the key and traps if it has a row.
  /// - Throws: the errors of ``set(_:_:)``.
  func insert(_ key: Key, _ value: StoredValue) throws

  /// Removes a row, if there is one.
  func clear(_ key: Key) throws

  /// Removes all rows of a range.
  ///
  /// In a database with history, a commit fails with ``StoreError/limitExceeded(_:)`` if it replaces and
  /// removes more than 256 MiB in total.
  func clear(_ range: KeyRange) throws

  /// Adds this commit's log record, at most one per commit. `payload` is stored. `attachment` is the same
  /// information as an object in memory, which followers of the log receive and need not decode.
  func log(_ payload: StoredValue, _ attachment: (any Sendable)?) throws

  /// Reserves ``commitVersion`` for this body even if it changes nothing. No other commit or reservation gets
  /// this version, and all versions assigned before are lower.
  func reserveCommitVersion()
}

/// The result of a sequenced body and the version of its commit.
public struct Committed<Result: Sendable>: Sendable {
  /// The return value of the body.
  public var result: Result
  /// The version of the commit or reservation. If the body neither wrote nor reserved a version, the version
  /// of the state that it saw.
  public var version: Version
  /// Whether the body wrote or logged anything.
  public var wrote: Bool

  /// Pairs a result with its commit version.
  public init(result: Result, version: Version, wrote: Bool) {
    self.result = result
    self.version = version
    self.wrote = wrote
  }
}

/// A row's value and the version of the commit that wrote it.
public struct VersionedValue: Sendable, Equatable {
  /// The row's value.
  public var value: StoredValue
  /// The version of the commit that wrote it.
  public var writtenAt: Version

  /// Pairs a value with its version.
  public init(value: StoredValue, writtenAt: Version) {
    self.value = value
    self.writtenAt = writtenAt
  }
}

/// One commit in a database's log.
public struct LogRecord: Sendable {
  /// The commit's version.
  public var version: Version
  /// The bytes that the commit logged.
  public var payload: StoredValue
  /// The attachment in memory; nil when the record was read from disk.
  public var attachment: (any Sendable)?

  /// Makes a log record.
  public init(version: Version, payload: StoredValue, attachment: (any Sendable)? = nil) {
    self.version = version
    self.payload = payload
    self.attachment = attachment
  }
}

/// A follower's subscription to the log. Delivery ends when it is cancelled or released.
public protocol LogSubscription: Sendable {
  /// The subscription delivers every record above this version.
  var startsAfter: Version { get }
  /// Ends delivery. A delivery in progress on another thread may still finish.
  func cancel()
}

/// The reads of a transaction, for validation at commit.
public struct ReadSet: Sendable {
  /// The version of the reads.
  public var version: Version
  /// Keys that were read, with or without a row.
  public var keys: [Key]
  /// Ranges that were scanned, empty or not.
  public var ranges: [KeyRange]

  /// Makes a read set.
  public init(version: Version, keys: [Key] = [], ranges: [KeyRange] = []) {
    self.version = version
    self.keys = keys
    self.ranges = ranges
  }
}
