// Fuzz target: the messages that a server sends to the Realtime Database SDK, one on each line. For any messages, the
// events of each observer rebuild the value of its query.

import RealtimeModel
import RealtimeWire

@testable import FirebaseDatabase

func fuzzClientMessages(_ input: UnsafeRawBufferPointer) throws {
  var client = FuzzedClient()
  for line in input.split(separator: UInt8(ascii: "\n")) {
    try client.receive(UnsafeRawBufferPointer(rebasing: line))
  }
}

/// The value that an observer knows from its events.
private struct ObservedValue {
  let path: Path
  let query: QuerySpec
  var children: [ChildKey: Node] = [:]
  /// The last complete value; nil until there was one.
  var value: Node?
}

/// A connection and a sync tree with observers and pending writes, without a transport.
private struct FuzzedClient {
  private var connection = ServerConnection(seed: 1, statsName: "s")
  private let tree = SyncTree()
  private var assembler = MessageAssembler(maximumBytes: 1 << 16)
  private var mirrors: [UInt: ObservedValue] = [:]
  private var generation = 0

  private static let all: EventInterest = [.childAdded, .childRemoved, .childChanged, .childMoved, .value]
  private static let queries: [(Path, QuerySpec)] = [
    ("list", .default), ("list", QuerySpec(limit: .last(2))),
    ("list", QuerySpec(ordering: .key, limit: .first(1))),
    ("list/a", .default),
  ]
  private static let writes: [(Path, Node)] = [
    ("list/w", .leaf(.int(1))), ("list/a/b", .leaf(.int(2))), ("list/c", .empty),
  ]

  init() {
    for (number, (path, query)) in FuzzedClient.queries.enumerated() {
      mirrors[UInt(number)] = ObservedValue(path: path, query: query)
      let registration = ObserverRegistration(id: UInt(number), interest: FuzzedClient.all)
      raise(tree.add(registration, at: path, query: query))
    }
    for (id, (path, node)) in FuzzedClient.writes.enumerated() {
      raise(tree.applyUserOverwrite(at: path, node, id: id))
      connection.write(OutgoingWrite(id: id, path: path, change: .put(node, hash: nil)))
    }
    connection.connect()
    performActions()
  }

  /// Receives the payload of a frame.
  mutating func receive(_ frame: UnsafeRawBufferPointer) throws {
    let message: ServerMessage? =
      switch assembler.receive(frame) {
      case .nothing, .oversized: nil
      case .message: try? ServerMessage(json: frame)
      case .assembled(let bytes): bytes.withUnsafeBytes { try? ServerMessage(json: $0) }
      }
    guard let message else { return }
    connection.received(message, on: generation, at: 0)
    performActions()
    try check()
  }

  private mutating func performActions() {
    while connection.hasActions || tree.hasActions {
      for action in tree.takeActions() {
        switch action {
        case .start(let listen): connection.listen(listen)
        case .stop(let listen): connection.unlisten(listen)
        }
      }
      for action in connection.takeActions() {
        switch action {
        case .open(let generation, _, _): self.generation = generation
        case .retry(let generation, _): connection.retry(generation)
        case .sendListen(let listen, let number):
          connection.recordHashedNode(tree.serverNode(of: listen), of: listen, number: number)
        case .report(let event): handle(event)
        case .fetchTokens, .refreshAppCheck, .send, .close: break
        }
      }
    }
  }

  private mutating func handle(_ event: ConnectionEvent) {
    switch event {
    case .push(.data(let path, let node, let tag)):
      raise(tree.applyServerOverwrite(at: path, node, tag: tag.map { Int($0) }))
    case .push(.merge(let path, let children, let tag)) where !children.isEmpty:
      raise(tree.applyServerMerge(at: path, children, tag: tag.map { Int($0) }))
    case .push(.cancel(let path, let queryText)):
      for listen in tree.listens(at: path) where listen.isCancelled(by: queryText) {
        raise(tree.cancel(listen, error: .permissionDenied))
      }
    case .listenAnswered(let listen, _, let error):
      raise(error.map { tree.cancel(listen, error: $0) } ?? tree.applyListenComplete(listen))
    case .writeAnswered(let id, let error): raise(tree.acknowledgeWrite(id, isRevert: error != nil))
    default: break
    }
  }

  private mutating func raise(_ events: [DataEvent]) {
    for event in events {
      let id = event.registration.id
      switch event.content {
      case .child(.childRemoved, let key, _, _): mirrors[id]?.children[key] = nil
      case .child(_, let key, let node, _): mirrors[id]?.children[key] = node
      case .value(let node): mirrors[id]?.value = node
      case .cancelled: mirrors[id] = nil
      }
    }
  }

  private func check() throws {
    for mirror in mirrors.values {
      guard let value = mirror.value else { continue }
      let node = tree.completeNode(at: mirror.path, query: mirror.query)
      try require(node == value, "the value of \(mirror.path) is not its last event")
      let keys = Set(value.childKeys)
      try require(
        Set(mirror.children.keys) == keys, "the children of \(mirror.path) are not those of the events")
      try require(
        keys.allSatisfy { mirror.children[$0] == value.child($0) },
        "a child of \(mirror.path) is not its last event")
    }
  }
}
