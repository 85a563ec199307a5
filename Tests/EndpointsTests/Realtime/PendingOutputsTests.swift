// What waits for a slow reader leads it to the newest state, through states that were.

import NIOCore
import RandomModels
import RealtimeEngine
import RealtimeModel
import Testing

@testable import Endpoints

@Suite("What waits for a slow reader")
struct PendingOutputsTests {
  /// A push as a client applies it to all that it knows.
  private func apply(_ push: RealtimePush, to node: Node) -> Node {
    switch push.body {
    case .set(let value): node.setting(push.path, to: value)
    case .merge(let changes): node.merging(changes.map { (push.path.appending($0.path), $0.value) })
    case .rangeMerge, .cancel: node
    }
  }

  @Test(
    "Replaying what comes out shows states that were, in order, and ends with the newest", arguments: 0..<300)
  func replay(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed))
    var pending = PendingOutputs()
    // For each tag all states that the server had, and how far the client is.
    var states: [Int64: [Node]] = [0: [.empty], 1: [.empty], 2: [.empty]]
    var known: [Int64: (node: Node, index: Int)] = [:]
    for tag in states.keys { known[tag] = (.empty, 0) }
    // For each answer how far every client state has to be when it comes.
    var owed: [[Int64: Int]] = []
    func take() {
      guard let output = pending.next() else { return }
      switch output {
      case .push(let push):
        let tag = push.tag ?? 0
        let (node, index) = known[tag] ?? (.empty, 0)
        let next = apply(push, to: node)
        let all = states[tag] ?? []
        let reached = all.indices.last { $0 >= index && all[$0] == next }
        #expect(reached != nil, "seed \(seed): a state that never was")
        // Of equal states the earliest that is possible: more is not claimed.
        known[tag] = (next, all.indices.first { $0 >= index && all[$0] == next } ?? index)
      case .response(let request, _):
        for (tag, index) in owed[Int(request)] {
          let all = states[tag] ?? []
          let (node, reached) = known[tag] ?? (.empty, 0)
          #expect(
            reached >= index || all[index] == node || all[index...].contains(node),
            "seed \(seed): an answer came before what it stands behind")
        }
      case .ended: Issue.record("nobody ended the session")
      }
    }
    for _ in 0..<80 {
      let tag = Int64(random.below(3))
      let wire = tag == 0 ? nil : tag
      var state = states[tag]?.last ?? .empty
      switch random.below(10) {
      case 0..<5:
        let path = random.path()
        let value = random.node()
        let after = state.setting(path, to: value)
        state = after
        pending.add(
          .push(RealtimePush(path, .set(after.descendant(path)), tag: wire)), merging: random.below(5) > 0)
        states[tag]?.append(state)
      case 5, 6:
        var changes: [(path: Path, value: Node)] = []
        for _ in 0..<3 {
          let path = random.path(2)
          if changes.contains(where: { $0.path.contains(path) || path.contains($0.path) }) { continue }
          changes.append((path, random.node()))
        }
        state = state.merging(changes.map { ($0.path, $0.value) })
        pending.add(.push(RealtimePush(.root, .merge(changes), tag: wire)), merging: true)
        states[tag]?.append(state)
      case 7:
        pending.add(.push(RealtimePush(.root, .set(state), tag: wire, isFirst: true)), merging: true)
        pending.add(.response(request: Int64(owed.count), .listening(warnings: [])), merging: true)
        owed.append(states.mapValues { $0.count - 1 })
      case 8:
        pending.add(.response(request: Int64(owed.count), .done), merging: true)
        owed.append(states.mapValues { $0.count - 1 })
      default: for _ in 0..<random.below(4) { take() }
      }
    }
    while !pending.isEmpty { take() }
    #expect(pending.bytes == 0)
    for (tag, all) in states { #expect(known[tag]?.node == all.last, "seed \(seed)") }
  }

  @Test("However often a few places change, a few messages wait, and no more bytes than their values have")
  func bounded() {
    var pending = PendingOutputs()
    for round in 0..<20_000 {
      let push = RealtimePush(Path("a/\(round % 50)"), .set(.leaf(.string("value \(round)"))))
      pending.add(.push(push), merging: true)
    }
    #expect(pending.count == 1)
    #expect(pending.bytes < 5_000)
  }

  @Test(
    "What comes and goes again stays a few messages, and is gone in the end, whatever was there before",
    arguments: [("c", false, 1), ("c", true, 2), ("c/d/e", false, 1), ("c/d/e", true, 2)])
  func comesAndGoes(place: String, hasPriority: Bool, most: Int) throws {
    let base = Path(place)
    let path = base.child("x")
    // Where there is a priority, something else keeps its location.
    let before = Node.empty.setting(
      hasPriority ? base.child("k") : base, to: .leaf(.int(5))
    ).setting(base.child(.priority), to: hasPriority ? .leaf(.int(3)) : .empty)
    var pending = PendingOutputs()
    for round in 0..<20_000 {
      pending.add(.push(RealtimePush(path, .set(.leaf(.int(Int64(round)))))), merging: true)
      pending.add(
        .push(
          RealtimePush(
            path, .set(.empty), emptied: hasPriority ? [] : ["c"], prioritized: hasPriority ? [base] : [])),
        merging: true)
    }
    #expect(pending.count <= most)
    // Priorities set again and again stand in one place.
    if hasPriority {
      for round in 0..<1_000 {
        pending.add(
          .push(
            RealtimePush(base, .merge([(".priority", .leaf(.int(Int64(round)))), ("x", .leaf(.int(1)))]))),
          merging: true)
      }
      pending.add(.push(RealtimePush(base, .merge([(".priority", .leaf(.int(3)))]))), merging: true)
      pending.add(.push(RealtimePush(path, .set(.empty), prioritized: [base])), merging: true)
      #expect(pending.count <= most + 3)
    }
    for kind in ClientModel.Kind.allCases {
      var client = ClientModel(kind: kind, path: .root, node: before)
      var pending = pending
      while let output = pending.next() { if case .push(let push) = output { client.apply(push) } }
      #expect(client.node == (hasPriority ? before : .empty))
    }
  }

  @Test(
    "Children that come and go by turns below a priority stay a few messages, which show states that were",
    arguments: [
      ["+x", "-x", "+y", "-y"], ["+x", "+y", "-x", "-y"], ["+y", "-x", "+x", "-y"], ["-x", "+y", "-y", "+x"],
      ["+x", "-y", "-x", "+y"], ["+x", "-x", "+y", "-y", "+z", "-z"], ["+x", "+y", "+z", "-y", "-x", "-z"],
      ["+x", "+x", "-x", "+y", "+y", "-y"],
    ])
  func turns(turns: [String]) {
    let before = Node.empty.setting("c", to: .object([("k", .leaf(.int(1)))], priority: .number(3)))
    for isBeside in [false, true] {
      var states = [before]
      var pending = PendingOutputs()
      var most = 0
      for round in 0..<2_000 {
        let turn = turns[round % turns.count]
        let path = Path("c").child(ChildKey(String(turn.dropFirst())))
        let value: Node = turn.hasPrefix("+") ? .leaf(.int(Int64(round))) : .empty
        pending.add(
          .push(RealtimePush(path, .set(value), prioritized: value.isEmpty ? ["c"] : [])), merging: true)
        // Something else waits between.
        if isBeside, round % 400 == 0 { pending.add(.response(request: 1, .done), merging: true) }
        if isBeside {
          pending.add(
            .push(RealtimePush(Path("q/\(round % 3)"), .set(.leaf(.int(1))), tag: Int64(round % 3))),
            merging: true)
        }
        states.append(states[round].setting(path, to: value))
        most = max(most, pending.count)
      }
      #expect(most <= (isBeside ? 8 + 5 : 4), "\(turns)")
      for kind in ClientModel.Kind.allCases {
        var client = ClientModel(kind: kind, path: .root, node: before)
        var (rest, reached) = (pending, 0)
        while let output = rest.next() {
          guard case .push(let push) = output, push.tag == nil else { continue }
          client.apply(push)
          let next = states.indices.first { $0 >= reached && states[$0] == client.node }
          #expect(next != nil, "\(turns): \(kind) shows what never was")
          reached = next ?? reached
        }
        #expect(client.node == states[states.count - 1], "\(turns)")
        #expect(rest.bytes == 0 && rest.isEmpty && rest.count == 0)
      }
    }
  }

  @Test("What was put back is not added to, whatever became part of what")
  func putBack() {
    func push(_ place: String, _ value: Node, _ tag: Int64? = nil) -> RealtimeOutput {
      let path = Path(place)
      return .push(
        RealtimePush(path, .set(value), tag: tag, prioritized: value.isEmpty ? [path.parent ?? .root] : []))
    }
    var pending = PendingOutputs()
    for output in [push("c/x", .leaf(.int(1))), push("c/y", .empty), push("d/z", .leaf(.int(1)), 1)] {
      pending.add(output, merging: true)
    }
    // The second becomes part of the first, with something behind it.
    pending.add(push("c/y", .leaf(.int(2))), merging: true)
    #expect(pending.count == 2)
    pending.add(push("c/y", .empty), merging: true)
    pending.add(push("d/w", .leaf(.int(2)), 1), merging: true)
    #expect(pending.count == 3)
    var outputs: [RealtimeOutput] = []
    for _ in 0..<2 { if let output = pending.next() { outputs.append(output) } }
    pending.putBack(outputs[1...])
    pending.add(push("d/z", .leaf(.int(3)), 1), merging: true)
    pending.add(push("c/y", .leaf(.int(3))), merging: true)
    var told: [String] = []
    for case .push(let push) in outputs[..<1] { told.append("\(push.tag ?? 0) \(push.path)") }
    while case .push(let push)? = pending.next() { told.append("\(push.tag ?? 0) \(push.path)") }
    #expect(told == ["0 c", "1 d", "0 c/y", "1 d/z"])
    #expect(pending.bytes == 0)
  }

  @Test("More places than one message should hold are several messages, and what was taken may be put back")
  func many() {
    var pending = PendingOutputs()
    var model = Node.empty
    for round in 0..<2_000 {
      let path = Path("p\(round)")
      model = model.setting(path, to: .leaf(.int(Int64(round))))
      pending.add(.push(RealtimePush(path, .set(.leaf(.int(Int64(round)))))), merging: true)
    }
    #expect(pending.count < 20)
    var outputs: [RealtimeOutput] = []
    for _ in 0..<5 { if let output = pending.next() { outputs.append(output) } }
    pending.putBack(outputs[2...])
    var known = Node.empty
    for case .push(let push) in outputs[..<2] { known = apply(push, to: known) }
    while let output = pending.next() { if case .push(let push) = output { known = apply(push, to: known) } }
    #expect(known == model)
    #expect(pending.bytes == 0)
  }
}
