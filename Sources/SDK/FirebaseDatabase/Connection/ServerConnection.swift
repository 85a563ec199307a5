// The client's side of protocol v5, as a state machine over successive connections. It has no I/O, clock or system
// randomness.
//
// Invariants
//   1. Unanswered requests are sent again after a reconnect in their original order: listens, writes, reads and
//      onDisconnect operations. Transactions fail with `disconnect` instead, since their hash may be out of date.
//   2. Request numbers ascend and never repeat.
//   3. Events of an earlier transport are ignored.

import FirebaseCore
import RealtimeModel
import RealtimeWire

/// A reason to keep the connection closed. It opens only while none applies.
enum InterruptReason: Hashable, Sendable {
  /// The app went offline.
  case user
  /// The server requested that this client does not reconnect.
  case serverKill
  /// The app or its database is gone.
  case shutdown
}

/// The connection to one database, over any number of transports.
struct ServerConnection {
  private enum State: Equatable {
    case idle
    case waiting
    /// A transport is being opened or waits for the hello.
    case connecting
    case connected(since: Int64)
  }

  private enum Request {
    case listen(Listen)
    case write(Int)
    case get(Int)
    case disconnectOperation(Int)
    case other
  }

  private struct Outstanding<Value> {
    let value: Value
    var isSent = false
  }

  /// The target that the server names in its pushes.
  private struct ListenTarget: Hashable {
    let path: Path
    let tag: Int?
  }

  private struct SentListen {
    let number: Int64
    let listen: Listen
    /// The cached value of which the listen sent a compound hash.
    var offer: Node?
  }

  private var state = State.idle
  private var generation = 0
  private var interrupts: Set<InterruptReason> = []
  private var backoff: Backoff
  private var lastSession: String?
  private var host: String?
  private var hasSentStats = false
  private var nextNumber: Int64 = 1
  private var requests: [Int64: Request] = [:]
  /// The listens, each with its position in the order of the app's requests.
  private var listens: [Listen: Int] = [:]
  private var lastListen = 0
  /// The numbers of the listens that wait for their answer; an answer to an earlier listen of the same
  /// query does not count.
  private var unansweredListens: [Listen: Int64] = [:]
  /// Every listen without an answer, given up ones too, in the order in which the server answers them.
  private var sentListens: [ListenTarget: [SentListen]] = [:]
  private var writes = PendingQueue<Outstanding<OutgoingWrite>>()
  private var gets: [(id: Int, path: Path, query: QuerySpec)] = []
  private var disconnectOperations: [Outstanding<DisconnectOperation>] = []
  private var actions: [ConnectionAction] = []

  /// A connection that lived longer than this, in milliseconds, resets the backoff.
  static let healthyAfter: Int64 = 30_000

  /// The counter that the first connection reports.
  let statsName: String

  init(seed: UInt64, statsName: String) {
    backoff = .database(seed: seed)
    self.statsName = statsName
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

  /// Whether the server still owes the first data of a listen.
  var hasUnansweredListens: Bool { isConnected && !unansweredListens.isEmpty }

  // MARK: Opening and closing

  /// Connects now, unless something keeps the connection closed.
  mutating func connect() {
    guard interrupts.isEmpty, state == .idle || state == .waiting else { return }
    generation += 1
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

  /// Takes a reason away; without another the connection opens at once.
  mutating func resume(_ reason: InterruptReason) {
    guard interrupts.remove(reason) != nil, interrupts.isEmpty else { return }
    backoff.reset()
    connect()
  }

  /// The wait before an attempt is over.
  mutating func retry(_ generation: Int) {
    guard generation == self.generation, state == .waiting else { return }
    connect()
  }

  /// The transport is gone, or never opened.
  mutating func transportClosed(_ generation: Int, at now: Int64) {
    guard generation == self.generation, state == .connecting || isConnected else { return }
    // A host that a server named may be gone for good.
    if !isConnected { host = nil }
    closed(at: now)
  }

  private mutating func closed(at now: Int64) {
    let wasConnected = isConnected
    if case .connected(let since) = state, now - since > ServerConnection.healthyAfter { backoff.reset() }
    state = .idle
    generation += 1
    requests = [:]
    unansweredListens = [:]
    sentListens = [:]
    var cut: [OutgoingWrite] = []
    writes.update { write in
      if write.isSent, write.value.isTransaction {
        cut.append(write.value)
        return nil
      }
      return Outstanding(value: write.value)
    }
    for index in disconnectOperations.indices { disconnectOperations[index].isSent = false }
    for write in cut {
      let error = RealtimeError(.init(rawValue: "disconnect"), "The connection was lost")
      actions.append(.report(.writeAnswered(write.id, error)))
    }
    if wasConnected { actions.append(.report(.disconnected)) }
    guard interrupts.isEmpty else { return }
    state = .waiting
    actions.append(.retry(generation: generation, after: Int64(backoff.next())))
  }

  // MARK: Requests of the app

  mutating func listen(_ listen: Listen) {
    guard listens[listen] == nil else { return }
    lastListen += 1
    listens[listen] = lastListen
    if isConnected { send(listen) }
  }

  /// Records the value of which a listen sent a compound hash. The range merges of the response apply to it.
  mutating func offered(_ node: Node, by listen: Listen, number: Int64) {
    let target = ListenTarget(path: listen.path, tag: listen.tag)
    guard let index = sentListens[target]?.firstIndex(where: { $0.number == number }) else { return }
    sentListens[target]?[index].offer = node
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

  /// The writes that must survive the program: all but transactions.
  var storedWrites: [OutgoingWrite] { writes.values.map(\.value).filter { !$0.isTransaction } }

  mutating func get(_ id: Int, at path: Path, query: QuerySpec) {
    gets.append((id, path, query))
    if isConnected { request(.get(path: path, query: query), .get(id)) }
  }

  /// Gives a read up; an answer that comes later is ignored.
  mutating func abandonGet(_ id: Int) {
    gets.removeAll { $0.id == id }
  }

  mutating func perform(_ operation: DisconnectOperation) {
    disconnectOperations.append(Outstanding(value: operation))
    if isConnected { sendDisconnectOperation(at: disconnectOperations.count - 1) }
  }

  /// Forgets all outstanding writes and operations for the disconnection.
  ///
  /// - Returns: the operations, which nobody will answer now.
  mutating func purge() -> [DisconnectOperation] {
    defer {
      writes = PendingQueue()
      disconnectOperations = []
    }
    return disconnectOperations.map(\.value)
  }

  // MARK: Messages of the server

  mutating func received(_ message: ServerMessage, on generation: Int, at now: Int64) {
    guard generation == self.generation else { return }
    switch message {
    case .control(let control): received(control, at: now)
    case .response(let response): received(response)
    case .push(.cancel(let path, let queryText)):
      forgetCancelled(path, queryText)
      actions.append(.report(.push(.cancel(path: path, queryText: queryText))))
    case .push(.rangeMerge(let path, let ranges, let tag)): received(ranges, at: path, tag.map { Int($0) })
    case .push(let push): actions.append(.report(.push(push)))
    }
  }

  /// Applies range merges to the value of which the listen sent a compound hash. The cached value may differ by now,
  /// since other data may have arrived.
  private mutating func received(_ ranges: [RangeMergeFields], at path: Path, _ tag: Int?) {
    let target = ListenTarget(path: path, tag: tag)
    guard let sent = sentListens[target]?.first, let offer = sent.offer else {
      let text = "Ignored a range merge at \(path.absolute) that nobody had asked for"
      return actions.append(.report(.note(isError: false, text)))
    }
    let whole = ranges.reduce(offer) { node, range in
      node.applying(RangeMerge(start: range.start, end: range.end, updates: range.data))
    }
    sentListens[target]?[0].offer = whole
    // An answer to a listen that was given up: the data of the listen in its place follows.
    guard unansweredListens[sent.listen] == sent.number else { return }
    actions.append(.report(.push(.data(path: path, data: whole, tag: tag.map(Int64.init)))))
  }

  private mutating func received(_ control: ServerControl, at now: Int64) {
    switch control {
    case .hello(let hello):
      guard state == .connecting else { return }
      state = .connected(since: now)
      lastSession = hello.sessionID
      // From now on this is where the database is, until nothing answers there.
      if !hello.host.isEmpty { host = hello.host }
      actions.append(.report(.connected(serverTime: hello.timestamp)))
      restore()
    case .reset(let host):
      self.host = host
      // A server that resets before its hello must not make this client spin.
      if isConnected { backoff.reset() }
      actions.append(.close)
      closed(at: now)
    case .shutdown(let reason):
      actions.append(.report(.note(isError: true, "The server ended the connection for good: \(reason)")))
      interrupt(.serverKill, at: now)
    case .error(let text): actions.append(.report(.note(isError: true, "Server error: \(text)")))
    case .pong, .switchAcknowledged, .endOfTransmission, .unknown: break
    }
  }

  private mutating func received(_ response: ServerResponse) {
    guard let pending = requests.removeValue(forKey: response.number) else { return }
    let error = response.error
    switch pending {
    case .listen(let listen):
      let target = ListenTarget(path: listen.path, tag: listen.tag)
      sentListens[target]?.removeAll { $0.number == response.number }
      if sentListens[target]?.isEmpty == true { sentListens[target] = nil }
      guard unansweredListens[listen] == response.number else { return }
      unansweredListens[listen] = nil
      if error != nil { listens[listen] = nil }
      let warnings = ServerConnection.warnings(in: response.payload)
      actions.append(.report(.listenAnswered(listen, warnings: warnings, error)))
    case .write(let id):
      guard writes.remove(id) != nil else { return }
      actions.append(.report(.writeAnswered(id, error)))
    case .get(let id):
      guard let index = gets.firstIndex(where: { $0.id == id }) else { return }
      gets.remove(at: index)
      actions.append(.report(.getAnswered(id, error.map { .failure($0) } ?? .success(response.payload))))
    case .disconnectOperation(let id):
      guard let index = disconnectOperations.firstIndex(where: { $0.value.id == id }) else { return }
      let operation = disconnectOperations.remove(at: index).value
      actions.append(.report(.disconnectOperationAnswered(operation, error)))
    case .other: break
    }
  }

  private static func warnings(in payload: Node) -> [String] {
    var warnings: [String] = []
    payload.child("w").forEachChild { _, node in
      if case .string(let text)? = node.leafValue { warnings.append(text) }
      return true
    }
    return warnings
  }

  private mutating func forgetCancelled(_ path: Path, _ queryText: [UInt8]?) {
    listens = listens.filter { $0.key.path != path || !$0.key.isCancelled(by: queryText) }
    unansweredListens = unansweredListens.filter { listens[$0.key] != nil }
  }

  // MARK: Sending

  /// Sends everything that is not answered, in its order.
  private mutating func restore() {
    if !hasSentStats {
      hasSentStats = true
      request(.stats([statsName: 1]), .other)
    }
    for (listen, _) in listens.sorted(by: { $0.value < $1.value }) { send(listen) }
    writes.update { Outstanding(value: $0.value, isSent: true) }
    writes.forEach { send($1.value) }
    for get in gets { request(.get(path: get.path, query: get.query), .get(get.id)) }
    for index in disconnectOperations.indices { sendDisconnectOperation(at: index) }
  }

  private mutating func send(_ listen: Listen) {
    let number = number(for: .listen(listen))
    unansweredListens[listen] = number
    sentListens[ListenTarget(path: listen.path, tag: listen.tag), default: []].append(
      SentListen(number: number, listen: listen))
    actions.append(.sendListen(listen, number: number))
  }

  private mutating func send(_ write: OutgoingWrite) {
    switch write.change {
    case .put(let node, let hash):
      request(.put(path: write.path, data: node, hash: hash), .write(write.id))
    case .merge(let children):
      request(.merge(path: write.path, children: children), .write(write.id))
    }
  }

  private mutating func sendDisconnectOperation(at index: Int) {
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

  private mutating func number(for request: Request) -> Int64 {
    defer { nextNumber += 1 }
    requests[nextNumber] = request
    return nextNumber
  }

  private mutating func request(_ action: ClientAction, _ request: Request) {
    let number = number(for: request)
    actions.append(.send(.request(ClientRequest(number, action))))
  }
}

extension Listen {
  /// Whether a revocation concerns this listen: all of a location, or the one query it names.
  func isCancelled(by queryText: [UInt8]?) -> Bool {
    guard let queryText else { return true }
    return query.json() == queryText
  }
}

extension Backoff {
  /// The delays in milliseconds between attempts to connect: 0, 1,000, then 1.3 times as long each time up to 30,000.
  /// 30 % of each is fixed and the rest random.
  static func database(seed: UInt64) -> Backoff {
    Backoff(initial: 1_000, maximum: 30_000, factor: 1.3, jitter: 0.3...1, seed: seed)
  }
}
