// One operation on its way to the sequencer, and who is to be told the outcome.

import RealtimeModel

/// A write as submitted: paths may end in `.priority`, values may be deferred.
enum RealtimeWrite: Sendable {
  case set(Path, Node)
  case update(Path, [(Path, Node)])
}

/// An operation and where its answer goes.
struct RealtimeOperation: Sendable {
  struct Listen: Sendable {
    let path: Path
    let query: QuerySpec
    let tag: Int64?
    let hash: String?
    let compoundHash: CompoundHash?
  }

  enum Action: Sendable {
    case write(RealtimeWrite, hash: String?)
    case get(Path, QuerySpec)
    case getShallow(Path, QuerySpec)
    case listen(Listen)
    case unlisten(Path, tag: Int64?)
    case onDisconnect(RealtimeWrite)
    case cancelOnDisconnect(Path)
    case authenticate(Caller)
    case getSetting(Setting)
    case setSetting(Setting, String)
    case getRules
    /// Counts what a write would touch.
    case estimate(RealtimeWrite, atMost: Int)
    case setRules(RulesFile)
    /// Does something that is for administrators; with about how many bytes it writes.
    case administer(bytes: Int, @Sendable (inout BatchExecution) throws -> Void)
    /// Takes a step of building index rows.
    case buildIndexes
    case close
    /// Ends a session and fires what it registered for its end, whether its connection still stands or not.
    case takeOver(session: String, of: ConnectionState?)
    /// Puts a value whose rows are there already into its place.
    case place(Path, ImportedTree)
    /// Forgets subtrees that lie elsewhere and hold nothing.
    case tidy
    /// Has all of a location followed that was followed by its rows.
    case followWhole(Path)
    /// Does nothing: its answer says that everything before it is durable.
    case pass
  }

  enum Origin: Sendable {
    /// A connection, and the number it wants the answer under.
    case connection(ConnectionState, request: Int64?)
    /// A call outside any connection.
    case call(Caller, @Sendable (Result<CallResult, RealtimeError>) -> Void)
  }

  enum CallResult: Sendable {
    case written(Node)
    case stale(Node)
    case value(Node)
    case shallow(ShallowNode)
    case text(String?)
    case rules(RulesFile?)
    case count(Int)
  }

  /// Whether a value that is too large to be hashed in the sequencer has the hash that a conditional write wants.
  struct HashVerdict: Sendable {
    let node: Node
    let matches: Bool
  }

  let action: Action
  let origin: Origin
  /// The most bytes that its rows and its share of the log record take, what it clears aside.
  let weight: Int
  /// How much of a batch it is beside that: what follows from it before anybody is told anything of the batch.
  let share: Int
  /// What was found out aside from the sequencer, once it was.
  var verdict: HashVerdict?
  /// The write, checked beforehand because it is heavy, or why it is refused.
  var checked: Result<WriteRequest, RealtimeError>?
  /// What was filled in beforehand of a heavy write, or why it could not be.
  var staged: Result<StagedWrite, RealtimeError>?
  /// The large read that it waited for, or why there is none.
  var largeRead: Result<BackgroundRead, RealtimeError>?
  /// The window of a query that it waited for, or why there is none.
  var window: Result<Node, RealtimeError>?
  /// How many large reads it has waited for.
  var backgroundReads = 0
  /// Whether its location was found to be larger than an answer may be.
  var isTooLarge = false
  /// How many batches had no time left for it.
  var timesSkipped = 0
  /// How the listen that it is starts, if its value still is what was looked at.
  var firstPush: ListenAnswer.Prepared?
  /// The database, which stays in memory while something is on its way to it.
  var database: RealtimeDatabase?

  init(_ action: Action, from origin: Origin) {
    self.action = action
    self.origin = origin
    share = if case .listen(let listen) = action { listen.isDefault ? 4 : 64 } else { 1 }
    weight =
      switch action {
      case .write(let write, _), .onDisconnect(let write): write.weight
      case .buildIndexes: 512 << 10
      case .setSetting(_, let text): 64 + text.utf8.count
      case .setRules(let rules): 64 + rules.text.utf8.count
      case .administer(let bytes, _): 64 + bytes
      default: 64
      }
  }

  /// The connection that wants its requests carried out in order; nil for a call outside any.
  var connection: ConnectionState? {
    if case .connection(let connection, _) = origin { connection } else { nil }
  }

  /// Whether nobody is left for whom it would be done: it reads or listens for a connection that its endpoint
  /// has closed. What such a connection wrote or registered happens all the same, on behalf of whom it said.
  var isAbandoned: Bool {
    switch action {
    case .listen, .unlisten, .get, .getShallow: connection?.isClosed ?? false
    default: false
    }
  }

  /// Whether it ends a session: it may never be dropped.
  var endsSession: Bool {
    switch action {
    case .close, .takeOver: true
    default: false
    }
  }
}

extension RealtimeWrite {
  /// The most bytes that its rows and its share of the log record take.
  var weight: Int {
    switch self {
    case .set(let path, let node):
      return 64 + RowWeight.change(path, node) + RowWeight.logged(1, estimatedSize: node.estimatedSize)
    case .update(let path, let changes):
      let size = changes.reduce(0) { $0 + $1.1.estimatedSize }
      return changes.reduce(64 + RowWeight.logged(changes.count, estimatedSize: size)) {
        $0 + RowWeight.change(path.appending($1.0), $1.1)
      }
    }
  }
}
