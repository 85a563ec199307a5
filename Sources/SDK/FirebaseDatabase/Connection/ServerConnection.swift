// The client's end of protocol v5 as a state machine over connections that come and go.
//
// Invariants: what was asked and not answered is sent again after a reconnect in the original order
// (listens, writes, reads, operations for the disconnection), except transactions, which fail with
// `disconnect` because their hash no longer means anything; request numbers grow and are never used
// twice; events of an earlier transport are ignored. No I/O, no clock and no randomness of its own.

import RealtimeModel
import RealtimeWire

/// Why the connection is kept closed. It opens only while there is no reason.
enum InterruptReason: Hashable, Sendable {
  /// The app went offline.
  case user
  /// The server told this client not to come back.
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

  private var state = State.idle
  private var generation = 0
  private var interrupts: Set<InterruptReason> = []
  private var backoff = Backoff()
  private var jitter: SeededGenerator
  private var lastSession: String?
  private var host: String?
  private var hasSentStats = false
  private var nextNumber: Int64 = 1
  private var requests: [Int64: Request] = [:]
  private var listens: [Listen] = []
  /// The numbers of the listens that wait for their answer; an answer to an earlier listen of the same
  /// query does not count.
  private var unansweredListens: [Listen: Int64] = [:]
  private var writes: [Outstanding<OutgoingWrite>] = []
  private var gets: [(id: Int, path: Path, query: QuerySpec)] = []
  private var disconnectOperations: [Outstanding<DisconnectOperation>] = []
  private var actions: [ConnectionAction] = []

  /// The counter that the first connection reports.
  let statsName: String

  init(seed: UInt64, statsName: String) {
    jitter = SeededGenerator(seed: seed)
    self.statsName = statsName
  }

  /// What is to be done, in order, since this was last asked.
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
    if case .connected(let since) = state, now - since > Backoff.healthyAfter { backoff.reset() }
    state = .idle
    generation += 1
    requests = [:]
    unansweredListens = [:]
    let cut = writes.filter { $0.isSent && $0.value.isTransaction }
    writes.removeAll { $0.isSent && $0.value.isTransaction }
    for index in writes.indices { writes[index].isSent = false }
    for index in disconnectOperations.indices { disconnectOperations[index].isSent = false }
    for write in cut {
      let error = RealtimeError(.init(rawValue: "disconnect"), "The connection was lost")
      actions.append(.report(.writeAnswered(write.value.id, error)))
    }
    if wasConnected { actions.append(.report(.disconnected)) }
    guard interrupts.isEmpty else { return }
    state = .waiting
    let random = Double(jitter.next() >> 11) / Double(1 << 53)
    actions.append(.retry(generation: generation, after: backoff.next(random: random)))
  }

  // MARK: What the app asks

  mutating func listen(_ listen: Listen) {
    guard !listens.contains(listen) else { return }
    listens.append(listen)
    if isConnected { send(listen) }
  }

  mutating func unlisten(_ listen: Listen) {
    guard let index = listens.firstIndex(of: listen) else { return }
    listens.remove(at: index)
    unansweredListens[listen] = nil
    guard isConnected else { return }
    request(.unlisten(path: listen.path, query: listen.query, tag: listen.tag.map(Int64.init)), .other)
  }

  mutating func write(_ write: OutgoingWrite) {
    writes.append(Outstanding(value: write))
    if isConnected { sendWrite(at: writes.count - 1) }
  }

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
      writes = []
      disconnectOperations = []
    }
    return disconnectOperations.map(\.value)
  }

  // MARK: What the server says

  mutating func received(_ message: ServerMessage, on generation: Int, at now: Int64) {
    guard generation == self.generation else { return }
    switch message {
    case .control(let control): received(control, at: now)
    case .response(let response): received(response)
    case .push(.cancel(let path, let queryText)):
      forgetCancelled(path, queryText)
      actions.append(.report(.push(.cancel(path: path, queryText: queryText))))
    case .push(let push): actions.append(.report(.push(push)))
    }
  }

  private mutating func received(_ control: ServerControl, at now: Int64) {
    switch control {
    case .hello(let hello):
      guard state == .connecting else { return }
      state = .connected(since: now)
      lastSession = hello.sessionID
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
      guard unansweredListens[listen] == response.number else { return }
      unansweredListens[listen] = nil
      if error != nil { listens.removeAll { $0 == listen } }
      let warnings = ServerConnection.warnings(in: response.payload)
      actions.append(.report(.listenAnswered(listen, warnings: warnings, error)))
    case .write(let id):
      guard let index = writes.firstIndex(where: { $0.value.id == id }) else { return }
      writes.remove(at: index)
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
    listens.removeAll { $0.path == path && $0.isCancelled(by: queryText) }
    unansweredListens = unansweredListens.filter { listens.contains($0.key) }
  }

  // MARK: Sending

  /// Sends everything that is not answered, in its order.
  private mutating func restore() {
    if !hasSentStats {
      hasSentStats = true
      request(.stats([statsName: 1]), .other)
    }
    for listen in listens { send(listen) }
    for index in writes.indices { sendWrite(at: index) }
    for get in gets { request(.get(path: get.path, query: get.query), .get(get.id)) }
    for index in disconnectOperations.indices { sendDisconnectOperation(at: index) }
  }

  private mutating func send(_ listen: Listen) {
    let number = number(for: .listen(listen))
    unansweredListens[listen] = number
    actions.append(.sendListen(listen, number: number))
  }

  private mutating func sendWrite(at index: Int) {
    writes[index].isSent = true
    let write = writes[index].value
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

/// A small generator with a seed, so that a run can be repeated.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
