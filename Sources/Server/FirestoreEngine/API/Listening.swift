// Serves Listen: defines its targets and responses, and opens streams.

package import Access
public import FirestoreModel

/// One target of a Listen stream.
public struct WatchTarget: Sendable {
  /// The documents that a target selects.
  public enum Selection: Sendable {
    /// Documents by name, existing or missing.
    case documents([DocumentName])
    /// The result of a query.
    case query(Query)
  }

  /// The state that the client already has.
  public enum Start: Sendable {
    /// The client has no documents of the target.
    case beginning
    /// The target's documents at the version of a resume token, which an earlier stream sent.
    case resumeToken([UInt8])
    /// The target's documents at a read time.
    case readTime(Timestamp)
  }

  /// The client's number for the target, unique among the stream's active targets. If it is 0, the server
  /// assigns a number.
  public var id: Int32
  /// The documents that the target selects.
  public var selection: Selection
  /// The state that the client already has.
  public var start: Start
  /// Whether the server removes the target after its first consistent snapshot.
  public var once: Bool
  /// The number of documents that the client has from `start`; nil if unknown. If it is above 0, the server's existence
  /// filter includes a Bloom filter of the documents' names.
  public var expectedCount: Int?
  /// The bytes of the request that added the target. They count towards the stream's limit.
  public var bytes: Int

  /// Makes a target.
  public init(
    id: Int32, _ selection: Selection, start: Start = .beginning, once: Bool = false,
    expectedCount: Int? = nil, bytes: Int = 0
  ) {
    self.id = id
    self.selection = selection
    self.start = start
    self.once = once
    self.expectedCount = expectedCount
    self.bytes = bytes
  }
}

/// One response on a Listen stream.
public enum WatchResponse: Sendable {
  /// A change of the targets themselves.
  case targetChange(WatchTargetChange)
  /// The current contents of a document that is in `targets` and no longer in `removedTargets`.
  case documentChange(StoredDocument, targets: [Int32], removedTargets: [Int32])
  /// A document that was deleted or does not exist.
  case documentDelete(DocumentName, readTime: Timestamp, removedTargets: [Int32])
  /// A document that left targets. Its contents are omitted, since the client may not be allowed to read
  /// them.
  case documentRemove(DocumentName, readTime: Timestamp, removedTargets: [Int32])
  /// An existence filter: the number of documents that match a target, and possibly a Bloom filter of their
  /// names.
  case existenceFilter(targetID: Int32, count: Int, names: ExistenceNames?)
}

/// The names in an existence filter: a bloom filter over full document names.
public typealias ExistenceNames = BloomFilter

/// A change of a stream's targets.
public struct WatchTargetChange: Sendable, Hashable {
  /// The kind of change. The raw values are those of Firestore's protocol.
  public enum Kind: Int, Sendable, Hashable {
    /// Carries only a new resume token and read time. Without target ids, the change applies to all targets: all their
    /// changes up to the read time have been sent.
    case noChange = 0
    /// The targets were added.
    case add = 1
    /// The targets were removed; `cause` is set if the server removed them.
    case remove = 2
    /// All documents of the targets, as of the read time, have been sent.
    case current = 3
    /// The client must forget all documents of these targets. The current documents follow.
    case reset = 4
  }

  /// The kind of change.
  public var kind: Kind
  /// The affected targets; empty for all.
  public var targetIDs: [Int32]
  /// Why the server removed the targets.
  public var cause: FirestoreError?
  /// The resume token, with which a client continues these targets from this point on another stream; empty
  /// for none.
  public var resumeToken: [UInt8]
  /// The read time of the consistent state that was sent; nil for none.
  public var readTime: Timestamp?

  /// Makes a target change.
  public init(
    _ kind: Kind, _ targetIDs: [Int32] = [], cause: FirestoreError? = nil, resumeToken: [UInt8] = [],
    readTime: Timestamp? = nil
  ) {
    self.kind = kind
    self.targetIDs = targetIDs
    self.cause = cause
    self.resumeToken = resumeToken
    self.readTime = readTime
  }
}

/// Receives the responses of one Listen stream.
public protocol WatchOutput: Sendable {
  /// Sends the next responses, in order. Called by one task at a time. Must return only when the client can
  /// receive more. Until it returns, the engine buffers and merges the changes for the client.
  /// - Throws: when the connection is closed; the stream then ends.
  func send(_ responses: [WatchResponse]) async throws

  /// Sends the next responses as ``send(_:)`` does. Calls `onWait` before it waits for the client to read, so that the engine
  /// serves other streams during the wait.
  func send(_ responses: [WatchResponse], onWait: @escaping @Sendable () -> Void) async throws

  /// Ends the stream with an error. Neither `send` nor `fail` is called afterwards.
  func fail(_ error: FirestoreError) async

  /// The account from which the stream reserves memory for the client's results; nil for a client in this process.
  var memory: (any ResultMemory)? { get }
}

extension WatchOutput {
  /// By default the client is in this process.
  public var memory: (any ResultMemory)? { nil }

  /// By default, calls `onWait` before every send, because any send may wait.
  public func send(_ responses: [WatchResponse], onWait: @escaping @Sendable () -> Void) async throws {
    onWait()
    try await send(responses)
  }
}

extension FirestoreEngine {
  /// Opens a Listen stream on a database. Responses go to `output` until the stream is closed.
  /// - Throws: NOT_FOUND if the database does not exist, UNAVAILABLE during shutdown.
  package func watch(
    _ name: DatabaseName, as caller: Principal, output: any WatchOutput
  ) async throws(FirestoreError) -> WatchStream {
    try await convertingErrors {
      let database = try await self.database(name)
      let stream = WatchStream(database, database.hub, caller, output)
      guard database.hub.add(stream) else {
        throw FirestoreError.unavailable("The server is shutting down.")
      }
      callerStreams.add(stream)
      // Shutdown may have ended the stream before it was added.
      if stream.isClosed { callerStreams.remove(stream) }
      return stream
    }
  }

  /// Ends the Listen and Write streams of callers whose credentials were revoked, with UNAUTHENTICATED. They send nothing
  /// more once this returns.
  /// - Parameter isRevoked: whether a caller's credentials are revoked. Must cover all revocations so far, because it also
  ///   checks streams that open later. Called on any thread, so it must be quick.
  package func revokeStreams(where isRevoked: @escaping @Sendable (Principal) -> Bool) {
    callerStreams.revoke(where: isRevoked)
  }
}
