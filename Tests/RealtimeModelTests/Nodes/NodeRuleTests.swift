// Tests the data model's rules for nodes, one rule in each test.

import RealtimeModel
import Testing

@Suite("Rules of the data model", .timeLimit(.minutes(10)))
struct NodeRuleTests {
  private let leaf = Node.leaf(.int(1))

  @Test("Objects without children are empty, even with a priority")
  func pruning() {
    #expect(Node.object([]).isEmpty)
    #expect(Node.object([], priority: .number(1)).isEmpty)
    #expect(Node.object([("a", .empty), ("b", .object([("c", .empty)]))]).isEmpty)
    #expect(Node.empty.with(priority: .number(1)).isEmpty)
    #expect(Node.empty.setting("a/b/c", to: leaf).setting("a/b/c", to: .empty).isEmpty)
  }

  @Test("A set clears the old priority; a write to .priority changes only the priority")
  func priorities() {
    let node = Node.empty.setting("a", to: .leaf(.int(1), priority: .number(5)))
    #expect(node.setting("a", to: .leaf(.int(2))).child("a").priority == nil)
    #expect(
      node.setting("a/.priority", to: .leaf(.string("p"))).child("a")
        == .leaf(.int(1), priority: .string("p")))
    #expect(node.setting("a/.priority", to: .empty).child("a") == leaf)
    #expect(node.setting("b/.priority", to: leaf) == node)
    #expect(node.descendant("a/.priority") == .leaf(.int(5)))
  }

  @Test(
    "Setting a child replaces a leaf's value and keeps its priority; removing a child changes nothing")
  func childOfLeaf() {
    let closed = Node.leaf(.string("closed"), priority: .number(4))
    #expect(
      closed.setting("u8", to: .leaf(.bool(true)))
        == .object([("u8", .leaf(.bool(true)))], priority: .number(4)))
    #expect(closed.setting("u8/x", to: .empty) == closed)
  }

  @Test("Removing the last child removes the priority of its parent")
  func lastChildRemoved() {
    let node = Node.object([("a", leaf)], priority: .number(1))
    #expect(node.setting("a", to: .empty).setting("b", to: leaf).priority == nil)
  }

  @Test("1 equals 1.0, -0 equals 0, and booleans are not numbers")
  func numbers() {
    #expect(Node.leaf(.double(1)) == Node.leaf(.int(1)))
    #expect(Node.leaf(.double(1)).hash == Node.leaf(.int(1)).hash)
    #expect(Node.leaf(.double(-0.0)).hash == Node.leaf(.int(0)).hash)
    #expect(Node.leaf(.bool(true)) != Node.leaf(.int(1)))
    #expect(Node.leaf(.bool(false)) != Node.leaf(.int(0)))
    #expect(Node.leaf(.int(.max)) != Node.leaf(.int(.max - 1)))
    guard case .leaf(.int(9_007_199_254_740_993)) = Node.leaf(.int(9_007_199_254_740_993)).content else {
      return #expect(Bool(false), "an integer lost its last bits")
    }
  }

  @Test("An object becomes an array if all keys are indexes and the highest is below twice their number")
  func arrays() {
    func length(_ keys: [ChildKey]) -> Int? { Node.object(keys.map { ($0, leaf) }).arrayLength }
    #expect(length(["0", "2"]) == 3)
    #expect(length(["1"]) == 2)
    #expect(length(["3"]) == nil)
    #expect(length(["1", "3"]) == 4)
    #expect(length(["2"]) == nil)
    #expect(length(["01"]) == nil)
    #expect(length(["0", "x"]) == nil)
    #expect(length(["-1", "0"]) == nil)
    #expect(leaf.arrayLength == nil)
  }

  @Test("Server values are resolved against the existing value, and all timestamps of a write are equal")
  func serverValues() {
    let stamp = Node.leaf(.deferred(.timestamp), priority: .deferred(.timestamp))
    let node = Node.object([
      ("t", stamp), ("n", .leaf(.deferred(.increment(.int(2))))),
      ("m", .leaf(.deferred(.increment(.double(0.5))))),
    ])
    #expect(node.containsDeferred)
    let existing = Node.object([("n", .leaf(.int(40))), ("m", .leaf(.string("text")))])
    let resolved = node.resolved(existing: existing, timestamp: 1_000)
    #expect(!resolved.containsDeferred)
    #expect(resolved.child("t") == .leaf(.int(1_000), priority: .number(1_000)))
    #expect(resolved.child("n") == .leaf(.int(42)))
    #expect(resolved.child("m") == .leaf(.double(0.5)))
    #expect(!node.setting("t", to: leaf).setting("n", to: leaf).setting("m", to: leaf).containsDeferred)
  }

  @Test(
    "Increments of integers overflow into doubles",
    arguments: [
      (RealtimeNumber.int(.max), RealtimeNumber.int(1), RealtimeNumber.double(9.223372036854775808e18)),
      (.int(.min), .int(-1), .int(.min)), (.int(1), .double(1.5), .double(2.5)),
      (.double(0.5), .double(0.5), .int(1)),
    ])
  func overflow(a: RealtimeNumber, b: RealtimeNumber, sum: RealtimeNumber) {
    // As a double, -2^63 - 1 rounds to -2^63, which fits a 64-bit integer.
    #expect(a.adding(b) == sum)
  }

  @Test("Depth and estimated size match the data")
  func depthAndSize() {
    #expect(Node.empty.depth == 0)
    #expect(Node.empty.setting("a/b/c", to: leaf).depth == 3)
    let node = Node.empty.setting("b", to: leaf).setting("a/x", to: leaf).setting("a/.priority", to: leaf)
    var leaves: [String] = []
    node.forEachLeaf { path, _ in leaves.append(path.description) }
    #expect(leaves.joined(separator: " ") == "a/.priority a/x b")
  }
}
