// What a Listen stream is asked and what it answers, in the model's types.

public import FirestoreModel

/// One thing to listen to.
public struct WatchTarget: Sendable {
  /// What is listened to.
  public enum Selection: Sendable {
    /// Documents by name, found or missing.
    case documents([DocumentName])
    /// A query's result.
    case query(Query)
  }

  /// From where the listener knows the target already.
  public enum Start: Sendable {
    /// From nothing.
    case beginning
    /// From the state that a token of an earlier stream stands for.
    case resumeToken([UInt8])
    /// From the state at a time.
    case readTime(Timestamp)
  }

  /// The client's number for the target, unique among the stream's active ones; 0 lets the stream number it.
  public var id: Int32
  /// What is listened to.
  public var selection: Selection
  /// What the listener knows already.
  public var start: Start
  /// Whether the target ends with its first consistent snapshot.
  public var once: Bool
  /// How many documents the listener had at `start`; above 0 asks for names in the existence filter.
  public var expectedCount: Int?
  /// The size of the request that asked for it: what the target counts for in its stream's budget.
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

/// One answer on a Listen stream.
public enum WatchResponse: Sendable {
  /// Something about targets themselves.
  case targetChange(TargetChange)
  /// A document as it is now: in `targets`, no longer in `removedTargets`.
  case documentChange(StoredDocument, targets: [Int32], removedTargets: [Int32])
  /// A document that was deleted, or does not exist.
  case documentDelete(DocumentName, readTime: Timestamp, removedTargets: [Int32])
  /// A document that left targets and whose contents must not be shown.
  case documentRemove(DocumentName, readTime: Timestamp, removedTargets: [Int32])
  /// How many documents match a target, and a filter that holds all their names.
  case existenceFilter(targetID: Int32, count: Int, names: ExistenceNames?)
}

/// The names in an existence filter: a bloom filter over full document names.
public typealias ExistenceNames = BloomFilter

/// Something about a stream's targets.
public struct TargetChange: Sendable, Hashable {
  /// What happened. The raw values are those of the wire.
  public enum Kind: Int, Sendable, Hashable {
    /// Only the token and time are new. With no target ids: everything up to the time has been sent.
    case noChange = 0
    /// Targets were added.
    case add = 1
    /// Targets were removed, with `cause` by the server.
    case remove = 2
    /// Targets have all their documents up to the time.
    case current = 3
    /// Forget all documents of these targets; what holds follows.
    case reset = 4
  }

  /// What happened.
  public var kind: Kind
  /// To which targets; empty means all.
  public var targetIDs: [Int32]
  /// Why the server removed the targets.
  public var cause: FirestoreError?
  /// Resumes the targets from here on another stream; empty for none.
  public var resumeToken: [UInt8]
  /// The consistent time; nil for none.
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

/// Where a Listen stream's answers go.
public protocol WatchOutput: Sendable {
  /// Takes the next answers, in order. Called by one task at a time; returns when there is room for more, so
  /// that a slow reader is conflated instead of buffered.
  /// - Throws: when the connection is gone; the stream then ends.
  func send(_ responses: [WatchResponse]) async throws

  /// The whole stream has failed: to be ended with this status. Nothing follows.
  func fail(_ error: FirestoreError) async
}
