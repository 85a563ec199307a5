// The engine's front: one object for all databases of a store, one method for each operation of the API.
//
// Invariant: a method either does all it says, at one version, or throws a `FirestoreError` and changed nothing;
// only UNAVAILABLE leaves the outcome of a commit open.

public import FirestoreModel
public import OrderedStore

/// Cloud Firestore over an ordered store.
public final class FirestoreEngine: Sendable {
  /// What can be set.
  public struct Options: Sendable {
    /// Whether a database that nobody created springs into being; else it is NOT_FOUND.
    public var createsDatabases: Bool
    /// How long a write waits for a lock before it fails ABORTED, in microseconds.
    public var lockWait: UInt64
    /// Idle Listen streams get a fresh token this often, in microseconds.
    public var heartbeat: UInt64
    /// Time for leases, waits and heartbeats.
    public var clock: any EngineClock

    /// Makes options: two seconds of lock wait, a heartbeat every 37 seconds.
    public init(
      createsDatabases: Bool, lockWait: UInt64 = 2_000_000, heartbeat: UInt64 = 37_000_000,
      clock: any EngineClock = SystemClock()
    ) {
      self.createsDatabases = createsDatabases
      self.lockWait = lockWait
      self.heartbeat = heartbeat
      self.clock = clock
    }
  }

  let store: any OrderedStore
  let policy: any AccessPolicy
  let options: Options

  /// Makes an engine over an open store, which stays the caller's to close.
  public init(store: any OrderedStore, policy: any AccessPolicy, options: Options) {
    self.store = store
    self.policy = policy
    self.options = options
  }
}

extension FirestoreEngine {
  /// Reads one document.
  /// - Throws: NOT_FOUND if there is none, INVALID_ARGUMENT or FAILED_PRECONDITION for a bad read time or token.
  public func getDocument(
    _ name: DocumentName, mask: [FieldPath]? = nil, consistency: ReadConsistency = .latest, as caller: Caller
  ) async throws(FirestoreError) -> DocumentRead { throw .unimplemented("GetDocument") }

  /// Lists the documents directly under a parent, a page at a time.
  public func listDocuments(
    _ request: ListDocumentsRequest, as caller: Caller
  ) async throws(FirestoreError) -> ListDocumentsPage { throw .unimplemented("ListDocuments") }

  /// Creates a document; without an id under one of twenty random letters and digits.
  /// - Throws: ALREADY_EXISTS if there is one.
  public func createDocument(
    in collection: CollectionName, id: String?, fields: MapValue, mask: [FieldPath]? = nil, as caller: Caller
  ) async throws(FirestoreError) -> StoredDocument { throw .unimplemented("CreateDocument") }

  /// Creates or changes a document and returns it as it is then, reduced to `mask`.
  public func updateDocument(
    _ name: DocumentName, fields: MapValue, updateMask: [FieldPath]?, mask: [FieldPath]? = nil,
    precondition: Precondition? = nil, as caller: Caller
  ) async throws(FirestoreError) -> StoredDocument { throw .unimplemented("UpdateDocument") }

  /// Deletes a document; none to delete is no error unless the precondition says so.
  public func deleteDocument(
    _ name: DocumentName, precondition: Precondition? = nil, as caller: Caller
  ) async throws(FirestoreError) { throw .unimplemented("DeleteDocument") }

  /// Reads documents at one version, in pages; each is delivered when the one before was taken.
  public func batchGetDocuments(
    in database: DatabaseName, _ names: [DocumentName], mask: [FieldPath]? = nil,
    consistency: ReadConsistency = .latest, as caller: Caller,
    deliver: @Sendable (BatchGetPage) async throws -> Void
  ) async throws { throw FirestoreError.unimplemented("BatchGetDocuments") }

  /// Begins a transaction and returns its token.
  public func beginTransaction(
    in database: DatabaseName, _ options: TransactionOptions, as caller: Caller
  ) async throws(FirestoreError) -> [UInt8] { throw .unimplemented("BeginTransaction") }

  /// Applies writes in order, all or none, and ends the transaction if one is named.
  public func commit(
    in database: DatabaseName, _ writes: [Write], transaction: [UInt8]? = nil, as caller: Caller
  ) async throws(FirestoreError) -> CommitResponse { throw .unimplemented("Commit") }

  /// Ends a transaction without writing.
  public func rollback(
    in database: DatabaseName, transaction: [UInt8], as caller: Caller
  ) async throws(FirestoreError) { throw .unimplemented("Rollback") }

  /// Runs a query at one version, in pages; each is delivered when the one before was taken.
  public func runQuery(
    _ query: Query, consistency: ReadConsistency = .latest, as caller: Caller,
    deliver: @Sendable (QueryPage) async throws -> Void
  ) async throws { throw FirestoreError.unimplemented("RunQuery") }

  /// Lists the ids of the collections under a parent.
  public func listCollectionIDs(
    _ request: ListCollectionIDsRequest, as caller: Caller
  ) async throws(FirestoreError) -> ListCollectionIDsPage { throw .unimplemented("ListCollectionIds") }

  /// Opens a Listen stream on a database. Its answers go to `output` until it is closed.
  /// - Throws: NOT_FOUND if there is no such database.
  public func watch(
    _ database: DatabaseName, as caller: Caller, output: any WatchOutput
  ) async throws(FirestoreError) -> WatchStream { throw .unimplemented("Listen") }

  /// Ends all streams with UNAVAILABLE and refuses what comes later. The store stays open.
  public func shutDown() async {}
}

/// One Listen stream. Commands return at once; what they cause arrives at the stream's output.
public final class WatchStream: Sendable {
  init() {}
  /// Adds a target: answered by ADD, its documents, CURRENT and a global NO_CHANGE, or by REMOVE with a cause.
  public func addTarget(_ target: WatchTarget) {}
  /// Removes a target: answered by exactly one REMOVE.
  public func removeTarget(_ id: Int32) {}
  /// Answers a target that could not even be parsed: REMOVE with a cause, in its turn.
  public func rejectTarget(_ id: Int32, _ error: FirestoreError) {}
  /// Ends the stream: nothing is sent any more.
  public func close() {}
}
