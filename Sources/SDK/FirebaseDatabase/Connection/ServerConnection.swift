// The connection to the server: the client's side of protocol v5, as a state machine over successive
// transports. It uses no I/O, clock or system randomness.
//
// Invariants
//   1. Unanswered requests are sent again after a reconnect in their original order: listens, writes, reads and
//      onDisconnect operations. Transactions fail with `disconnect` instead, since their hash may be out of date.
//   2. Request numbers ascend and never repeat.
//   3. Events of an earlier transport are ignored.

import FirebaseCore
import RealtimeModel
import RealtimeWire

/// A reason to keep the connection closed. The connection opens only while no reason applies.
enum InterruptReason: Hashable, Sendable {
  /// The app went offline.
  case user
  /// The server requested that this client does not reconnect.
  case serverKill
  /// The app was deleted, or the database was released.
  case shutdown
}

/// The connection to one database, over successive transports.
struct ServerConnection {
  enum State: Equatable {
    case idle
    case waiting
    /// The tokens to send are being fetched.
    case fetchingTokens
    /// A transport is being opened or waits for the hello.
    case connecting
    /// The server has sent its hello and verifies the token. The values are the client's and the server's
    /// time of the hello.
    case authenticating(since: Int64, serverTime: Int64)
    case connected(since: Int64)
  }

  enum Request {
    case listen(Listen)
    case write(Int)
    case get(Int)
    case disconnectOperation(Int)
    case authentication
    case other
  }

  struct Outstanding<Value> {
    let value: Value
    var isSent = false
  }

  /// The target that the server names in its pushes.
  struct ListenTarget: Hashable {
    let path: Path
    let tag: Int?
  }

  struct SentListen {
    let number: Int64
    let listen: Listen
    /// The cached value whose compound hash the listen sent.
    var hashedNode: Node?
  }

  var state = State.idle
  var generation = 0
  var interrupts: Set<InterruptReason> = []
  var backoff: Backoff
  var lastSession: String?
  var host: String?
  var hasSentStats = false
  var nextNumber: Int64 = 1
  var requests: [Int64: Request] = [:]
  /// The listens, each with its position in the order of the app's requests.
  var listens: [Listen: Int] = [:]
  var lastListen = 0
  /// The request numbers of the listens that wait for a response. A response to an earlier listen of the same
  /// query is ignored.
  var unansweredListens: [Listen: Int64] = [:]
  /// Every listen without a response, including cancelled ones, in the order in which the server responds.
  var sentListens: [ListenTarget: [SentListen]] = [:]
  var writes = PendingQueue<Outstanding<OutgoingWrite>>()
  var gets = PendingQueue<(path: Path, query: QuerySpec)>()
  var disconnectOperations: [Outstanding<DisconnectOperation>] = []
  var actions: [ConnectionAction] = []
  /// The tokens; nil if the connection never sends any.
  var tokens: ConnectionTokens?

  /// A connection that lived longer than this, in milliseconds, resets the backoff.
  static let healthyAfter: Int64 = 30_000

  /// The counter that the first connection reports.
  let statsName: String

  /// Makes a closed connection.
  ///
  /// - Parameter usesTokens: whether tokens are fetched before each attempt to connect.
  init(seed: UInt64, statsName: String, usesTokens: Bool = false) {
    backoff = .database(seed: seed)
    self.statsName = statsName
    if usesTokens { tokens = ConnectionTokens() }
  }

  /// Removes and returns the pending actions, in order.
  mutating func takeActions() -> [ConnectionAction] {
    defer { actions = [] }
    return actions
  }

  var hasActions: Bool { !actions.isEmpty }

  var isConnected: Bool {
    if case .connected = state { return true }
    return false
  }

  /// Whether a listen waits for its first data from the server.
  var hasUnansweredListens: Bool { isConnected && !unansweredListens.isEmpty }

  // MARK: Opening and closing

  /// Connects now, unless an interrupt reason keeps the connection closed.
  mutating func connect() {
    guard interrupts.isEmpty, state == .idle || state == .waiting else { return }
    generation += 1
    if let tokens {
      state = .fetchingTokens
      actions.append(
        .fetchTokens(
          generation: generation, forcingAuth: tokens.mustRefreshAuth,
          forcingAppCheck: tokens.mustRefreshAppCheck))
    } else {
      open()
    }
  }

  mutating func open() {
    state = .connecting
    actions.append(.open(generation: generation, lastSession: lastSession, host: host))
  }

  /// Closes the connection and keeps it closed until `resume` with the same reason.
  mutating func interrupt(_ reason: InterruptReason, at now: Int64) {
    interrupts.insert(reason)
    if state == .waiting { state = .idle }
    guard state != .idle else { return }
    actions.append(.close)
    closed(at: now)
  }

  /// Removes an interrupt reason. If no other reason remains, the connection opens immediately.
  mutating func resume(_ reason: InterruptReason) {
    guard interrupts.remove(reason) != nil, interrupts.isEmpty else { return }
    backoff.reset()
    connect()
  }

  /// Connects immediately if the connection waits for its next attempt, and resets the back-off. It is called
  /// when the app comes to the foreground or the network changes.
  mutating func conditionsChanged() {
    backoff.reset()
    if state == .waiting { connect() }
  }

  /// Connects, because the delay before the next attempt has passed.
  mutating func retry(_ generation: Int) {
    guard generation == self.generation, state == .waiting else { return }
    connect()
  }

  /// Handles a transport that was closed or could not be opened.
  mutating func transportClosed(_ generation: Int, at now: Int64) {
    guard generation == self.generation, state != .idle, state != .waiting else { return }
    // The host to which a server redirected the client may have been removed permanently.
    if state == .connecting { host = nil }
    closed(at: now)
  }

  /// Ends the connection, and schedules the next attempt.
  ///
  /// - Parameter delay: the minimum time until the next attempt, in milliseconds.
  mutating func closed(at now: Int64, delay: Int64 = 0) {
    let wasConnected = isConnected
    if case .connected(let since) = state, now - since > ServerConnection.healthyAfter { backoff.reset() }
    state = .idle
    generation += 1
    requests = [:]
    unansweredListens = [:]
    sentListens = [:]
    var lostTransactions: [OutgoingWrite] = []
    writes.update { write in
      if write.isSent, write.value.isTransaction {
        lostTransactions.append(write.value)
        return nil
      }
      return Outstanding(value: write.value)
    }
    for index in disconnectOperations.indices { disconnectOperations[index].isSent = false }
    for write in lostTransactions {
      let error = RealtimeError(.init(rawValue: "disconnect"), "The connection was lost")
      actions.append(.report(.writeAnswered(write.id, error)))
    }
    if wasConnected { actions.append(.report(.disconnected)) }
    guard interrupts.isEmpty else { return }
    state = .waiting
    actions.append(.retry(generation: generation, after: max(delay, Int64(backoff.next()))))
  }

  // MARK: Requests of the app

  mutating func listen(_ listen: Listen) {
    guard listens[listen] == nil else { return }
    lastListen += 1
    listens[listen] = lastListen
    if isConnected { send(listen) }
  }

  /// Records the value whose compound hash a listen sent. The range merges of the response apply to that
  /// value.
  mutating func recordHashedNode(_ node: Node, of listen: Listen, number: Int64) {
    let target = ListenTarget(path: listen.path, tag: listen.tag)
    guard let index = sentListens[target]?.firstIndex(where: { $0.number == number }) else { return }
    sentListens[target]?[index].hashedNode = node
  }

  mutating func unlisten(_ listen: Listen) {
    guard listens.removeValue(forKey: listen) != nil else { return }
    unansweredListens[listen] = nil
    guard isConnected else { return }
    request(.unlisten(path: listen.path, query: listen.query, tag: listen.tag.map(Int64.init)), .other)
  }

  mutating func write(_ write: OutgoingWrite) {
    writes.append(write.id, Outstanding(value: write, isSent: isConnected))
    if isConnected { send(write) }
  }

  /// The writes that must survive the end of the program: all except transactions.
  var storedWrites: [OutgoingWrite] { writes.values.map(\.value).filter { !$0.isTransaction } }

  mutating func get(_ id: Int, at path: Path, query: QuerySpec) {
    gets.append(id, (path, query))
    if isConnected { request(.get(path: path, query: query), .get(id)) }
  }

  /// Cancels a read. A response that arrives later is ignored.
  mutating func cancelGet(_ id: Int) {
    _ = gets.remove(id)
  }

  mutating func perform(_ operation: DisconnectOperation) {
    disconnectOperations.append(Outstanding(value: operation))
    if isConnected { sendDisconnectOperation(at: disconnectOperations.count - 1) }
  }

  /// Removes all outstanding writes and onDisconnect operations.
  ///
  /// - Returns: the operations, which will receive no response.
  mutating func purge() -> [DisconnectOperation] {
    defer {
      writes = PendingQueue()
      disconnectOperations = []
    }
    return disconnectOperations.map(\.value)
  }

  // MARK: Sending

  /// Sends all requests without a response, in their order.
  mutating func restore() {
    if !hasSentStats {
      hasSentStats = true
      request(.stats([statsName: 1]), .other)
    }
    for (listen, _) in listens.sorted(by: { $0.value < $1.value }) { send(listen) }
    writes.update { Outstanding(value: $0.value, isSent: true) }
    writes.forEach { send($1.value) }
    gets.forEach { request(.get(path: $1.path, query: $1.query), .get($0)) }
    for index in disconnectOperations.indices { sendDisconnectOperation(at: index) }
  }

  mutating func send(_ listen: Listen) {
    let number = number(for: .listen(listen))
    unansweredListens[listen] = number
    sentListens[ListenTarget(path: listen.path, tag: listen.tag), default: []].append(
      SentListen(number: number, listen: listen))
    actions.append(.sendListen(listen, number: number))
  }

  mutating func send(_ write: OutgoingWrite) {
    switch write.change {
    case .put(let node, let hash):
      request(.put(path: write.path, data: node, hash: hash), .write(write.id))
    case .merge(let children):
      request(.merge(path: write.path, children: children), .write(write.id))
    }
  }

  mutating func sendDisconnectOperation(at index: Int) {
    disconnectOperations[index].isSent = true
    let operation = disconnectOperations[index].value
    let action: ClientAction =
      switch operation.change {
      case .put(let node): .onDisconnectPut(path: operation.path, data: node)
      case .merge(let children): .onDisconnectMerge(path: operation.path, children: children)
      case .cancel: .onDisconnectCancel(path: operation.path)
      }
    request(action, .disconnectOperation(operation.id))
  }

  mutating func number(for request: Request) -> Int64 {
    defer { nextNumber += 1 }
    requests[nextNumber] = request
    return nextNumber
  }

  mutating func request(_ action: ClientAction, _ request: Request) {
    let number = number(for: request)
    actions.append(.send(.request(ClientRequest(number, action))))
  }
}

extension Listen {
  /// Whether a revocation ends this listen. It ends all listens of a location, or only the query that it
  /// names.
  func isCancelled(by queryText: [UInt8]?) -> Bool {
    guard let queryText else { return true }
    return query.json() == queryText
  }
}

extension Backoff {
  /// The delays in milliseconds between attempts to connect: 0, then 1,000, then 1.3 times the previous one,
  /// up to 30,000. 30 % of each delay is fixed and the other 70 % is random.
  static func database(seed: UInt64) -> Backoff {
    Backoff(initial: 1_000, maximum: 30_000, factor: 1.3, jitter: 0.3...1, seed: seed)
  }
}
