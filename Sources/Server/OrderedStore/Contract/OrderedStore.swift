// The contract every storage engine of the server keeps: serializable transactions over ordered keys and one
// commit log per database. Model: FoundationDB's transactions (Zhou et al., SIGMOD 2021), plus `execute`.
//
// Invariants
//   1. A commit is visible to `read`, `log` and `latestVersion` only after it is durable.
//   2. Versions of one database strictly increase, over restarts and clocks set back too.
//   3. Whoever reads at version v sees exactly the commits with version <= v.
//   4. A commit whose recorded reads have changed since they were read is refused as a conflict.

/// An ordered key: bytes compared as unsigned numbers, shorter prefix first. At most 32 KiB.
public typealias Key = [UInt8]

/// A stored value. At most 16 MiB.
public typealias StoredValue = [UInt8]

/// A store: one data directory (or one process's memory), holding any number of databases.
public protocol OrderedStore: Sendable {
  /// Opens a database by its name in the catalogue, numbering it if it is new.
  ///
  /// - Parameters:
  ///   - name: the full name, at most 1,024 bytes of UTF-8: `firestore/projects/P/databases/D` or `realtime/NS`.
  ///   - history: how long overwritten rows stay readable at older versions.
  /// - Throws: ``StoreError``.
  func database(named name: String, history: HistoryWindow) async throws -> any OrderedDatabase

  /// Whether the catalogue has a database of this name. Costs one read, however many there are.
  func databaseExists(named name: String) async throws -> Bool

  /// The names of all databases in the catalogue, in ascending order of their UTF-8 bytes.
  func databaseNames() async throws -> [String]

  /// Removes every row, log record and version of a database from the catalogue and the disk.
  func removeDatabase(named name: String) async throws

  /// Finishes what is in flight, makes it durable, and releases the directory. Later calls throw ``StoreError``.
  func close() async throws
}

/// How long a database keeps what was overwritten, so that reads in the past and resume tokens work.
public enum HistoryWindow: Sendable, Equatable {
  /// At least so many seconds.
  case seconds(Int)
  /// Only what a read that is open now still needs.
  case activeReadersOnly
}

/// One database of a store: an ordered map with history, a sequencer and a commit log.
public protocol OrderedDatabase: Sendable {
  /// The name in the catalogue.
  var name: String { get }

  /// The version of the newest durable commit or reservation.
  var latestVersion: Version { get }

  /// The version at which the database was created in the catalogue.
  var createdVersion: Version { get }

  /// Reads a consistent view.
  ///
  /// `body` runs synchronously and may block: the store runs it where blocking is allowed, and may first try it
  /// on the caller's thread, for as long as memory serves its reads and its scans stay short, running it again from
  /// the start on a thread of its own when they do not; it must therefore be free of side effects.
  /// - Parameter version: nil for the newest durable state.
  /// - Throws: ``StoreError/versionTooOld`` below the history window, ``StoreError/versionInFuture`` above
  ///   ``latestVersion``, and whatever `body` throws.
  func read<Result: Sendable>(
    at version: Version?, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result

  /// Holds on to the newest durable state, for reads that are too long for one call, as an export to a slow reader.
  /// Rows that are overwritten meanwhile keep their space until it is released: hold it for minutes, not for days.
  /// - Throws: ``StoreError`` when the database is closed.
  func pinView() throws -> any PinnedView

  /// Runs a deterministic read-modify-write in the database's single sequencer.
  ///
  /// `body` sees every commit sequenced before it, durable or in flight, so hot keys neither conflict nor wait for
  /// each other's sync. Bodies run one at a time in the order of the calls. The call returns once the commit is
  /// durable. A body that throws writes nothing. A body that writes nothing and logs nothing commits nothing:
  /// its result is returned once everything it saw is durable, with that state's version, or with a version of its own
  /// if it asked for one (``Sequenced/keepVersion()``).
  /// - Parameters:
  ///   - reads: what the caller read earlier; the body runs only if none of it changed since.
  ///   - completion: called once with the outcome, on the store's publishing thread, on a sequencer's, or on the caller's
  ///     for a call that is refused at once. It must be quick and must not block. Errors are
  ///     ``StoreError/conflict``, ``StoreError/unavailable(_:)``, and whatever `body` throws.
  func execute<Result: Sendable>(
    validating reads: ReadSet?, _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result,
    completion: @escaping @Sendable (Swift.Result<Committed<Result>, any Error>) -> Void
  )

  /// Hands out a version above every commit so far and below every later one, so that a read time given to a client
  /// without a commit stays truthful. Monotonic over restarts.
  func reserveVersion() async throws -> Version

  /// ``latestVersion`` if it is at most `age` microseconds older than the clock; else nil.
  func latestVersion(within age: UInt64) -> Version?

  /// ``latestVersion``, once it is at most `age` microseconds older than the clock: one is reserved if need be. A
  /// snapshot that is taken now and read later has to begin here, since on an idle database the newest commit may lie
  /// where history ends.
  func recentVersion(within age: UInt64) async throws -> Version

  /// Commit records with a version above `version`, in order and gapless, at most `limit`.
  ///
  /// - Throws: ``StoreError/versionTooOld`` when records above `version` have been trimmed.
  func log(after version: Version, limit: Int) async throws -> [LogRecord]

  /// Registers a follower of the log: `deliver` is called for each durable commit that carries a log record, in order,
  /// once, on the store's publishing thread, after the commit is durable and before its `execute` returns.
  /// It must be quick and must not block. Returns the version after which delivery starts: everything up to
  /// and including it is in ``log(after:limit:)`` or a `read`.
  func follow(_ deliver: @escaping @Sendable (LogRecord) -> Void) -> any LogSubscription
}

extension OrderedDatabase {
  /// Runs a read-modify-write as ``execute(validating:_:completion:)`` does, and returns or throws its outcome.
  public func execute<Result: Sendable>(
    validating reads: ReadSet?, _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result
  ) async throws -> Committed<Result> {
    try await withCheckedThrowingContinuation { continuation in
      execute(validating: reads, body) { continuation.resume(with: $0) }
    }
  }
}

/// A state of a database that stays readable until it is released.
public protocol PinnedView: Sendable {
  /// The version it shows.
  var version: Version { get }

  /// Reads, as ``OrderedDatabase/read(at:_:)`` does, always the same state.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result
}

/// A consistent view of a database at one version.
public protocol ReadView {
  /// The version this view shows.
  var version: Version { get }

  /// The value of a key, with the version that wrote it; nil if there is none.
  func get(_ key: Key) throws -> VersionedValue?

  /// Visits the rows of a range in order, until `visit` returns false or the range ends.
  ///
  /// The bytes handed to `visit` are only valid during the call; copy what you keep.
  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) throws

  /// Visits rows as ``scan(_:reverse:_:)`` does, and stops, too, once it has gone over `most` keys that held nothing at
  /// this view's version: a view of the past goes over what came later, and over what was gone before, for as long as
  /// that is history. Returns how far it went without a visit, so that the caller goes on from there, or lets others
  /// have their turn first.
  func scan(
    _ range: KeyRange, reverse: Bool, maximumHidden limit: Int,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) throws -> HiddenKeys
}

extension ReadView {
  /// For views that go over nothing but what they show.
  public func scan(
    _ range: KeyRange, reverse: Bool, maximumHidden limit: Int,
    _ visit: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ writtenAt: Version) throws ->
      Bool
  ) throws -> HiddenKeys {
    try scan(range, reverse: reverse, visit)
    return HiddenKeys()
  }
}

/// The keys that a scan went over and that hold nothing in its view.
public struct HiddenKeys: Sendable {
  /// How many they were.
  public var count = 0
  /// The last key that the scan went over, if it stopped for them; nil if it was stopped, or came to its end.
  public var last: Key?

  /// None.
  public init() {}
}

/// The state that a sequenced body sees and changes: all sequenced commits, and its own writes.
public protocol SequencedTransaction: ReadView {
  /// The version this commit will have: max(clock, last + 1 µs). Equals `version` of the view.
  var commitVersion: Version { get }

  /// Writes a row.
  /// - Throws: ``StoreError/limitExceeded(_:)`` for a key above 32 KiB, a value above 16 MiB or a commit above 64 MiB.
  func set(_ key: Key, _ value: StoredValue) throws

  /// Writes a row under a key that holds none in this state, as the caller knows from what else it read here. The
  /// store does not look for a row to keep as history: of one that the caller overlooked, the value before would be
  /// lost to reads in the past. In a debug build the store looks, and ends the process if there is one.
  /// - Throws: as ``set(_:_:)``.
  func insert(_ key: Key, _ value: StoredValue) throws

  /// Removes a row; nothing happens if there is none.
  func clear(_ key: Key) throws

  /// Removes all rows of a range.
  ///
  /// The commit is refused as ``StoreError/limitExceeded(_:)`` if what all its writes replace and remove is to be kept
  /// as history and is more than 256 MiB.
  func clear(_ range: KeyRange) throws

  /// Adds this commit's log record: bytes that a later process can read, and the same facts in memory for the
  /// followers of this process. At most one per commit.
  func log(_ payload: StoredValue, _ attachment: (any Sendable)?) throws

  /// Keeps ``commitVersion`` for this body even if it changes nothing: no other commit or reservation has it, and all
  /// that was handed out before lies below it.
  func reserveCommitVersion()
}

/// What a sequenced body returned, and the version it was committed at.
public struct Committed<Result: Sendable>: Sendable {
  /// What the body returned.
  public var result: Result
  /// The commit's version, or the version of the state it saw if it wrote nothing and kept none.
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

/// A row's bytes and the commit that wrote them.
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
  /// What the engine logged.
  public var payload: StoredValue
  /// What the engine attached in memory; nil when the record was read back from disk.
  public var attachment: (any Sendable)?

  /// Makes a log record.
  public init(version: Version, payload: StoredValue, attachment: (any Sendable)? = nil) {
    self.version = version
    self.payload = payload
    self.attachment = attachment
  }
}

/// A follower's registration: delivery ends when it is cancelled or released.
public protocol LogSubscription: Sendable {
  /// Delivery covers every record above this version.
  var startsAfter: Version { get }
  /// Ends delivery. A delivery under way on another thread may still finish.
  func cancel()
}

/// What a transaction read, for validation at commit.
public struct ReadSet: Sendable {
  /// The version the reads were made at.
  public var version: Version
  /// Single keys read, found or not.
  public var keys: [Key]
  /// Ranges scanned, empty or not.
  public var ranges: [KeyRange]

  /// Makes a read set.
  public init(version: Version, keys: [Key] = [], ranges: [KeyRange] = []) {
    self.version = version
    self.keys = keys
    self.ranges = ranges
  }
}
