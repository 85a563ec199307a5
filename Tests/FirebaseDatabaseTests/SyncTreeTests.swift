// Tests the sync tree, which is the client's cache of listens and pending writes. These tests check the
// listens that it requests from the connection. A complete listen is a listen to all children of a location. A
// tag is the number that the client gives to a filtered listen. SyncPointSpecTests checks its events.

import RealtimeModel
import Testing

@testable import FirebaseDatabase

@Suite("Sync tree", .timeLimit(.minutes(10)))
struct SyncTreeTests {
  private let tree = SyncTree()
  private let all: EventInterest = [.value, .childAdded, .childRemoved, .childChanged, .childMoved]

  private func observer(_ id: UInt) -> ObserverRegistration { ObserverRegistration(id: id, interest: all) }

  private func actions() -> [String] {
    tree.takeActions().map { action in
      switch action {
      case .start(let listen): "start \(listen.path.absolute) \(listen.tag.map { "#\($0)" } ?? "all")"
      case .stop(let listen): "stop \(listen.path.absolute) \(listen.tag.map { "#\($0)" } ?? "all")"
      }
    }
  }

  private let firstTwo = QuerySpec(limit: .first(2))

  @Test(
    "a complete listen replaces the listens below it; a query with only an order is a complete listen")
  func coveredListens() {
    _ = tree.add(observer(1), at: "a", query: QuerySpec(ordering: .key))
    #expect(actions() == ["start /a all"])
    _ = tree.add(observer(2), at: "a/b", query: .default)
    _ = tree.add(observer(3), at: "a/b", query: firstTwo)
    _ = tree.add(observer(4), at: "a", query: .default)
    #expect(actions().isEmpty)
  }

  @Test(
    "a new complete listen stops the listens below it; when it is removed, these listens start before it stops"
  )
  func shadowing() {
    _ = tree.add(observer(1), at: "a/b", query: .default)
    _ = tree.add(observer(2), at: "a/c", query: firstTwo)
    _ = tree.add(observer(3), at: "a/b/d", query: firstTwo)
    #expect(actions() == ["start /a/b all", "start /a/c #1"])
    _ = tree.add(observer(4), at: "a", query: .default)
    #expect(actions() == ["start /a all", "stop /a/b all", "stop /a/c #1"])
    _ = tree.remove(observer(4), at: "a", query: .default)
    #expect(actions() == ["start /a/b all", "start /a/c #1", "stop /a all"])
  }

  @Test("tags are never reused, and pushes for a removed query are ignored")
  func tags() {
    _ = tree.add(observer(1), at: "a", query: firstTwo)
    _ = tree.remove(observer(1), at: "a", query: firstTwo)
    _ = tree.add(observer(2), at: "a", query: firstTwo)
    #expect(actions() == ["start /a #1", "stop /a #1", "start /a #2"])
    #expect(tree.applyServerOverwrite(at: "a", .object([("x", .leaf(.int(1)))]), tag: 1).isEmpty)
    #expect(tree.applyServerMerge(at: "a", [("x", .empty)], tag: 99).isEmpty)
    #expect(tree.applyServerOverwrite(at: "a", .object([("x", .leaf(.int(1)))]), tag: 2).count == 2)
  }

  @Test("after the response to a listen without data, the value is known to be empty")
  func listenComplete() {
    #expect(tree.add(observer(1), at: "a", query: .default).isEmpty)
    let events = tree.applyListenComplete(Listen(path: "a", query: .default, tag: nil))
    #expect(events.count == 1)
    #expect(tree.applyListenComplete(Listen(path: "a", query: .default, tag: nil)).isEmpty)
  }

  @Test("a rejected listen cancels its observers, and the listens that it covered start")
  func rejectedListen() {
    _ = tree.add(observer(1), at: "a", query: firstTwo)
    _ = tree.add(observer(2), at: "a", query: .default)
    _ = tree.add(observer(3), at: "a/b", query: .default)
    _ = actions()
    let events = tree.cancel(Listen(path: "a", query: .default, tag: nil), error: .permissionDenied)
    #expect(events.map(\.registration.id) == [2])
    #expect(actions() == ["start /a #1", "start /a/b all"])
    let remaining = tree.cancel(Listen(path: "a", query: firstTwo, tag: 1), error: .permissionDenied)
    #expect(remaining.map(\.registration.id) == [1])
    #expect(actions().isEmpty)
  }

  @Test(
    "removing all observers through a reference includes the location's queries, not observers of children")
  func removal() {
    _ = tree.add(observer(1), at: "a", query: firstTwo)
    _ = tree.add(observer(2), at: "a", query: .default)
    _ = tree.add(observer(3), at: "a/b", query: .default)
    _ = actions()
    _ = tree.remove(nil, at: "a", query: .default)
    #expect(actions() == ["start /a/b all", "stop /a all"])
    #expect(tree.applyServerOverwrite(at: "a/b", .leaf(.int(1))).map(\.registration.id) == [3])
    #expect(tree.applyServerOverwrite(at: "a", .leaf(.int(1))).map(\.registration.id) == [3])
  }

  @Test("a rejected write is reverted with corrective events, and later writes remain")
  func revert() {
    _ = tree.add(observer(1), at: "a", query: .default)
    _ = tree.applyServerOverwrite(at: "a", .object([("x", .leaf(.int(1)))]))
    _ = tree.applyUserOverwrite(at: "a/x", .leaf(.int(2)), id: 1)
    _ = tree.applyUserOverwrite(at: "a/y", .leaf(.int(3)), id: 2)
    let events = tree.acknowledgeWrite(1, isRevert: true)
    #expect(events.count == 2)
    #expect(
      tree.completeNode(at: "a", query: .default) == .object([("x", .leaf(.int(1))), ("y", .leaf(.int(3)))]))
    #expect(tree.acknowledgeWrite(1, isRevert: true).isEmpty)
  }

  @Test(
    "the input of a transaction contains writes that observers do not see, except writes that the caller excludes"
  )
  func transactionInput() {
    _ = tree.add(observer(1), at: "a", query: .default)
    _ = tree.applyServerOverwrite(at: "a", .leaf(.int(1)))
    #expect(tree.applyUserOverwrite(at: "a", .leaf(.int(2)), id: 1, isVisible: false).isEmpty)
    #expect(tree.latestNode(at: "a") == .leaf(.int(2)))
    #expect(tree.latestNode(at: "a", excluding: [1]) == .leaf(.int(1)))
    #expect(tree.completeNode(at: "a", query: .default) == .leaf(.int(1)))
  }

  @Test("a merge that removes the only child and adds another keeps the location's priority")
  func mergeKeepsPriority() {
    let merges: [[(Path, Node)]] = [
      [("a", .leaf(.int(1))), ("b", .empty)], [("b", .empty), ("c", .leaf(.int(1)))],
    ]
    for (index, merge) in merges.enumerated() {
      let path = Path("list/\(index)")
      _ = tree.add(observer(UInt(index)), at: path, query: .default)
      let before = Node.object([("b", .leaf(.int(2)))], priority: .number(7))
      _ = tree.applyServerOverwrite(at: path, before)
      let added = merge.filter { !$0.1.isEmpty }.map { ($0.0.keys[0], $0.1) }
      let after = Node.object(added, priority: .number(7))
      _ = tree.applyUserMerge(at: path, merge, id: index)
      #expect(tree.completeNode(at: path, query: .default) == after, "merge \(index) of the app")
      _ = tree.acknowledgeWrite(index, isRevert: true)
      #expect(tree.completeNode(at: path, query: .default) == before, "merge \(index) reverted")
      _ = tree.applyServerMerge(at: path, merge)
      #expect(tree.completeNode(at: path, query: .default) == after, "merge \(index) of the server")
    }
  }

  @Test("a merge can create a location and its priority, at any depth")
  func mergeSetsPriority() {
    _ = tree.add(observer(1), at: "list", query: .default)
    _ = tree.applyServerOverwrite(at: "list", .empty)
    let priority = Node.leaf(.int(5))
    let merge: [(Path, Node)] = [
      (Path(keys: [.priority]), priority), (Path(keys: ["a", .priority]), priority), ("a/x", .leaf(.int(1))),
    ]
    let after = Node.object(
      [("a", .object([("x", .leaf(.int(1)))], priority: .number(5)))], priority: .number(5))
    _ = tree.applyUserMerge(at: "list", merge.inMergeOrder(), id: 1)
    #expect(tree.completeNode(at: "list", query: .default) == after)
    _ = tree.acknowledgeWrite(1, isRevert: true)
    #expect(tree.completeNode(at: "list", query: .default) == .empty)
    _ = tree.applyServerMerge(at: "list", merge)
    #expect(tree.completeNode(at: "list", query: .default) == after)
  }

  @Test("overlapping writes combine by path, and the later write overrides the earlier one")
  func overlays() {
    var overlay = WriteOverlay()
    overlay.write(.object([("x", .leaf(.int(1))), ("y", .leaf(.int(2)))]), at: "a")
    overlay.merge([("x", .empty), ("z/w", .leaf(.int(3)))], at: "a")
    let expected = Node.object([("y", .leaf(.int(2))), ("z", .object([("w", .leaf(.int(3)))]))])
    #expect(overlay.completeNode(at: "a") == expected)
    #expect(overlay.completeNode(at: "a/z/w") == .leaf(.int(3)))
    #expect(overlay.completeNode(at: "b") == nil)
    #expect(overlay.applied(to: .object([("b", .leaf(.int(9)))])).childCount == 2)
    overlay.forget("a/z")
    #expect(overlay.completeNode(at: "a/z") == nil)
    #expect(overlay.completeNode(at: "a/y") == .leaf(.int(2)))
    var priority = WriteOverlay()
    priority.write(.leaf(.int(5)), at: Path(keys: ["p", .priority]))
    #expect(priority.applied(to: .object([("p", .leaf(.int(1)))])).child("p").priority == .number(5))
    #expect(priority.applied(to: .empty).isEmpty, "a priority of a missing value is ignored")
  }
}
