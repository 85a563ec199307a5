// Tests the output queue of one connection. For a slow client the queue coalesces pushes: it combines several pushes into
// one push. The client must still show only states that the database had.

import NIOCore
import RandomModels
import RealtimeEngine
import RealtimeModel
import Testing

@testable import RealtimeEndpoints

@Suite("Outbound queue of a slow reader")
struct OutboundQueueTests {
  /// Applies a push to a complete copy of the database.
  private func apply(_ push: RealtimePush, to node: Node) -> Node {
    switch push.body {
    case .set(let value): node.setting(push.path, to: value)
    case .merge(let changes): node.merging(changes.map { (push.path.appending($0.path), $0.value) })
    case .rangeMerge, .cancel: node
    }
  }

  private func set(_ path: Path, _ value: Node, tag: Int64? = nil) -> RealtimeOutput {
    .push(RealtimePush(path, .set(value), tag: tag))
  }

  private func drain(_ queue: inout OutboundQueue) -> [String] {
    var messages: [String] = []
    while let output = queue.next() {
      switch output {
      case .push(let push): messages.append("\(push.tag ?? 0) \(push.path)")
      case .response(let request, _): messages.append("response \(request)")
      case .authRevoked: messages.append("revoked")
      case .ended: messages.append("ended")
      }
    }
    return messages
  }

  @Test(
    "Dequeued pushes give only states that the database had, in order, and the latest state at the end",
    arguments: 0..<300)
  func replay(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed))
    var queue = OutboundQueue()
    // A tag identifies a filtered listen; 0 stands for all default listens. `states` has, for each tag, all states of the
    // data of its listens. `client` has the client's state, and the index of this state in `states`.
    var states: [Int64: [Node]] = [0: [.empty], 1: [.empty], 2: [.empty]]
    var client: [Int64: (node: Node, index: Int)] = [:]
    for tag in states.keys { client[tag] = (.empty, 0) }
    // For each response, the index of the state that the client must have reached for each tag.
    var required: [[Int64: Int]] = []
    func dequeue() {
      guard let output = queue.next() else { return }
      switch output {
      case .push(let push):
        let tag = push.tag ?? 0
        let (node, index) = client[tag] ?? (.empty, 0)
        let next = apply(push, to: node)
        // Takes the earliest of equal states, so that later checks are not too strict.
        let reached = states[tag]?.indices.first { $0 >= index && states[tag]?[$0] == next }
        #expect(reached != nil, "seed \(seed): a state that never existed")
        client[tag] = (next, reached ?? index)
      case .response(let request, _):
        for (tag, index) in required[Int(request)] {
          let all = states[tag] ?? []
          let (node, reached) = client[tag] ?? (.empty, 0)
          #expect(
            reached >= index || all[index...].contains(node),
            "seed \(seed): a response overtook a push")
        }
      case .authRevoked, .ended: Issue.record("the session ended")
      }
    }
    for _ in 0..<80 {
      let tag = Int64(random.below(3))
      let wireTag = tag == 0 ? nil : tag
      var state = states[tag]?.last ?? .empty
      switch random.below(10) {
      case 0..<5:
        let path = random.path()
        state = state.setting(path, to: random.node())
        let push = RealtimePush(path, .set(state.descendant(path)), tag: wireTag)
        queue.append(.push(push), coalescing: random.below(5) > 0)
        states[tag]?.append(state)
      case 5, 6:
        var changes: [(path: Path, value: Node)] = []
        for _ in 0..<3 {
          let path = random.path(2)
          if changes.contains(where: { $0.path.contains(path) || path.contains($0.path) }) { continue }
          changes.append((path, random.node()))
        }
        state = state.merging(changes.map { ($0.path, $0.value) })
        queue.append(.push(RealtimePush(.root, .merge(changes), tag: wireTag)), coalescing: true)
        states[tag]?.append(state)
      case 7:
        let first = RealtimePush(.root, .set(state), tag: wireTag, isFirst: true)
        queue.append(.push(first), coalescing: true)
        queue.append(.response(request: Int64(required.count), .listening(warnings: [])), coalescing: true)
        required.append(states.mapValues { $0.count - 1 })
      case 8:
        queue.append(.response(request: Int64(required.count), .done), coalescing: true)
        required.append(states.mapValues { $0.count - 1 })
      default: for _ in 0..<random.below(4) { dequeue() }
      }
    }
    while !queue.isEmpty { dequeue() }
    #expect(queue.bytes == 0)
    for (tag, all) in states { #expect(client[tag]?.node == all.last, "seed \(seed)") }
  }

  @Test("20,000 updates of 50 values are coalesced into one message with the latest values")
  func bounded() {
    var queue = OutboundQueue()
    for round in 0..<20_000 {
      queue.append(set(Path("a/\(round % 50)"), .leaf(.string("value \(round)"))), coalescing: true)
    }
    #expect(queue.count == 1)
    #expect(queue.bytes < 5_000)
  }

  @Test("A coalesced message has at most 256 paths, and every value arrives")
  func manyPaths() {
    var queue = OutboundQueue()
    var model = Node.empty
    for round in 0..<2_000 {
      let (path, value) = (Path("p\(round)"), Node.leaf(.int(Int64(round))))
      model = model.setting(path, to: value)
      queue.append(set(path, value), coalescing: true)
    }
    #expect(queue.count == 8)
    var client = Node.empty
    while case .push(let push)? = queue.next() { client = apply(push, to: client) }
    #expect(client == model)
    #expect(queue.bytes == 0)
  }

  @Test("Removals, priorities, first values, cancellations and responses are not coalesced with other pushes")
  func barriers() {
    let one = Node.leaf(.int(1))
    let barriers: [RealtimeOutput] = [
      set("c/x", .empty), set("c/.priority", one),
      .push(RealtimePush("c", .merge([(Path("x"), one), (Path("y"), .empty)]))),
      .push(RealtimePush("c", .merge([(Path("x"), one), (Path(".priority"), one)]))),
      .push(RealtimePush("c", .set(one), isFirst: true)),
      .push(RealtimePush("c", .cancel(.permissionDenied))),
      .response(request: 1, .listening(warnings: [])),
    ]
    for barrier in barriers {
      var queue = OutboundQueue()
      for output in [set("c/a", one), barrier, set("c/b", one)] { queue.append(output, coalescing: true) }
      #expect(queue.count == 3)
    }
  }

  @Test("A coalesced push keeps the position of its first part in the queue")
  func position() {
    var queue = OutboundQueue()
    let one = Node.leaf(.int(1))
    queue.append(set("c/x", one), coalescing: true)
    queue.append(set("d/x", one, tag: 1), coalescing: true)
    queue.append(.response(request: 7, .done), coalescing: true)
    queue.append(set("c/y", one), coalescing: true)
    queue.append(set("d/x", .leaf(.int(2)), tag: 1), coalescing: true)
    #expect(drain(&queue) == ["0 c", "1 d/x", "response 7"])
  }

  @Test(
    "Outputs that are put back keep their order; a later push is coalesced with the last queued push of its tag"
  )
  func putBack() {
    var queue = OutboundQueue()
    let one = Node.leaf(.int(1))
    for path in ["a", "b", "c"] as [Path] { queue.append(set(path, one), coalescing: false) }
    queue.append(set("d/x", one, tag: 1), coalescing: false)
    var outputs: [RealtimeOutput] = []
    for _ in 0..<3 { if let output = queue.next() { outputs.append(output) } }
    queue.putBack(outputs[1...])
    queue.append(set("d/y", one, tag: 1), coalescing: true)
    queue.append(set("c", .leaf(.int(2))), coalescing: true)
    #expect(drain(&queue) == ["0 b", "0 c", "1 d"])
    #expect(queue.bytes == 0)
  }
}
