// Tests compound hashes with vectors from the tests of Firebase's clients. Tests range merges, which the server
// computes from a client's compound hash: applying them to the client's value must give the server's value.

import RandomModels
import Testing

@testable import RealtimeModel

@Suite("Compound hashes and range merges", .timeLimit(.minutes(10)))
struct CompoundHashTests {
  private let tea = Node.object([("name", .leaf(.string("tea"))), ("stock", .leaf(.int(41)))])

  @Test("A small value has one range")
  func oneRange() {
    let hash = CompoundHash(of: tea)
    #expect(hash.paths == ["stock"])
    #expect(hash.hashes == ["rZNRb7jtQqncMJfdRu63aeoUkaQ=", ""])
  }

  @Test("A range's text repeats the path to its first leaf")
  func twoRanges() {
    let node = Node.empty.setting("a/x", to: .leaf(.int(1))).setting("b", to: .leaf(.string("q")))
    let hash = CompoundHash(of: node) { _, path in path == "a/x" }
    #expect(hash.paths == ["a/x", "b"])
    #expect(hash.hashes == ["1MrbPrFkag36VJVl+ntcevAS2SE=", "ZXyd1kHQwhyYqq8gUvgycHXesak=", ""])
  }

  @Test("In the hashed text a leaf's priority precedes its value")
  func priority() {
    let node = Node.object([("k", .leaf(.string("v"), priority: .number(3)))])
    #expect(CompoundHash(of: node).hashes == ["Lf7s0X5n+EM8fBg6Ofm3qDx0Av4=", ""])
  }

  @Test("The compound hash of the empty node has one range, which has no end")
  func empty() {
    #expect(CompoundHash(of: .empty).paths.isEmpty)
    #expect(CompoundHash(of: .empty).hashes == [""])
    #expect(throws: RealtimeError.self) { try CompoundHash(paths: ["a"], hashes: [""]) }
  }

  /// Cases from the tests of Firebase's clients: (value, ends of the ranges, hashed texts of the ranges).
  private static let published: [(String, [Path], [String])] = [
    (#"{"foo":"bar"}"#, ["foo"], [#"("foo":(string:"bar"))"#]),
    (
      #"{"foo":{"!beforePriority":"before",".priority":"prio","afterPriority":"after"},"qux":"qux"}"#,
      ["foo/.priority", "qux"],
      [
        #"("foo":("!beforePriority":(string:"before"),".priority":(string:"prio")))"#,
        #"("foo":("afterPriority":(string:"after")),"qux":(string:"qux"))"#,
      ]
    ),
    (
      #"{"foo":{".value":"bar",".priority":"baz"}}"#, ["foo"],
      [#"("foo":(priority:string:"baz":string:"bar"))"#]
    ),
    (
      #"{"1":"one","2":"two","10":"ten"}"#, ["2", "10"],
      [#"("1":(string:"one"),"2":(string:"two"))"#, #"("10":(string:"ten"))"#]
    ),
    (
      #"{"bar":{"deep":"value"},"foo":{"other-deep":"value"}}"#, ["bar/deep", "foo/other-deep"],
      [#"("bar":("deep":(string:"value")))"#, #"("foo":("other-deep":(string:"value")))"#]
    ),
    (
      #"{"bar":{"deep":"value"},"foo":{"other-deep":"value"}}"#, ["foo/other-deep"],
      [#"("bar":("deep":(string:"value")),"foo":("other-deep":(string:"value")))"#]
    ),
    (
      #"{"\"":"\\","\"\\\"\\":"\"\\\"\\"}"#, [#""\"\"#],
      [#"("\"":(string:"\\"),"\"\\\"\\":(string:"\"\\\"\\"))"#]
    ),
  ]

  @Test(
    "Ranges and hashed texts equal those of Firebase's tests: priorities, key order, nesting, quotes",
    arguments: 0..<7)
  func publishedCases(index: Int) throws {
    let (json, ends, texts) = CompoundHashTests.published[index]
    let node = try Array(json.utf8).withUnsafeBytes { try Node(json: $0, .read) }
    let hash = CompoundHash(of: node) { _, path in ends.dropLast().contains(path) }
    #expect(hash.paths == ends)
    #expect(hash.hashes == texts.map { digest($0) } + [""])
  }

  private func digest(_ text: String) -> String {
    var hashed = HashText()
    hashed.append(text)
    return hashed.digest
  }

  @Test(
    "By default, a compound hash has about as many ranges as one of Firebase's clients",
    arguments: [(500, 12...18), (5_000, 45...55), (50_000, 140...160)])
  func defaultRanges(children: Int, expected: ClosedRange<Int>) {
    let node = Node.object((0..<children).map { (ChildKey("\($0)"), .leaf(.string("value"))) })
    #expect(expected.contains(CompoundHash(of: node).hashes.count))
  }

  @Test("Only differing ranges are sent")
  func differing() throws {
    let hash = try CompoundHash(
      paths: ["a/x", "b"], hashes: ["1MrbPrFkag36VJVl+ntcevAS2SE=", "ZXyd1kHQwhyYqq8gUvgycHXesak=", ""])
    let base = Node.empty.setting("a/x", to: .leaf(.int(1)))
    let server = base.setting("b", to: .leaf(.string("r"))).setting("c", to: .leaf(.bool(true)))
    let expected = Node.object([("b", .leaf(.string("r"))), ("c", .leaf(.bool(true)))])
    #expect(server.rangeMerges(against: hash) == [RangeMerge(start: "a/x", end: nil, updates: expected)])
    #expect(base.rangeMerges(against: hash) == [RangeMerge(start: "a/x", end: "b", updates: .empty)])
    #expect(base.setting("b", to: .leaf(.string("q"))).rangeMerges(against: hash) == [])
  }

  @Test("A value of 100 KB has about 50 ranges, and one change affects one of them")
  func manyRanges() throws {
    var node = Node.empty
    for i in 0..<2_000 {
      node = node.setting(Path("k\(i)/text"), to: .leaf(.string("value number \(i) of many")))
    }
    let hash = CompoundHash(of: node)
    #expect((20...200).contains(hash.paths.count))
    let changed = node.setting("k777/text", to: .leaf(.string("new")))
    let merges = try #require(changed.rangeMerges(against: hash))
    #expect(merges.count == 1)
    #expect(merges[0].updates.childCount < 200)
    #expect(merges.reduce(node) { $0.applying($1) } == changed)
  }

  @Test(
    "Applying the range merges of two random values to the first gives the second, for random ranges",
    arguments: 0..<30)
  func property(seed: Int) throws {
    var random = RandomNodes(seed: UInt64(seed))
    for _ in 0..<60 {
      let client = random.node(depth: 3)
      var server = client
      for _ in 0..<random.below(4) { server = server.setting(random.path(), to: random.node(depth: 1)) }
      if random.below(4) == 0 { server = server.setting(random.path().child(.priority), to: .leaf(.int(7))) }
      if random.below(10) == 0 { server = random.node(depth: 3) }
      var cuts = random
      let hash = CompoundHash(of: client) { _, path in cuts.below(3) == 0 && !path.isPriority }
      if client == server { #expect(server.rangeMerges(against: hash) == []) }
      guard let merges = server.rangeMerges(against: hash) else { continue }
      let result = merges.reduce(client) { $0.applying($1) }
      #expect(result == server)
    }
  }

  @Test("Extracting many ranges visits only their contents and the paths to their ends")
  func cost() throws {
    func value(_ changed: (Int) -> Bool) -> Node {
      let items = (0..<200).map { i -> (ChildKey, Node) in
        let texts = (0..<3).map {
          (ChildKey("t\($0)"), Node.leaf(.string("text \(i) \(changed(i) && $0 == 1)")))
        }
        return (ChildKey("k\(1_000 + i)"), .object(texts))
      }
      return .object([("a", .object(items)), ("z", .leaf(.int(1)))])
    }
    let (client, server) = (value { _ in false }, value { $0 % 2 == 0 })
    // Ends a range after each leaf.
    let hash = CompoundHash(of: client) { _, _ in true }
    var visited = 0
    let found = server.rangeMerges(against: hash, visited: &visited)
    let merges = try #require(found)
    #expect(merges.count == 100)
    #expect(merges.reduce(client) { $0.applying($1) } == server)
    // Each merge visits the root, the list, one child and its strings.
    #expect(visited <= 6 * merges.count, "\(visited) for \(merges.count)")
  }

  @Test("A merge that starts after a leaf also carries that leaf's priority, which is inside its interval")
  func priorityOfTheStart() throws {
    func value(_ b: String, _ priority: Priority?) -> Node {
      .object([
        ("a", .leaf(.int(1), priority: priority)), ("b", .leaf(.string(b))),
        ("c", .leaf(.string(String(repeating: "c", count: 2_000)))),
      ])
    }
    let (client, server) = (value("x", .number(5)), value("y", .number(5)))
    let hash = CompoundHash(of: client) { _, _ in true }
    #expect(hash.paths == ["a", "b", "c"])
    let merges = try #require(server.rangeMerges(against: hash))
    let updates = Node.object([("a", .leaf(.int(1), priority: .number(5))), ("b", .leaf(.string("y")))])
    #expect(merges == [RangeMerge(start: "a", end: "b", updates: updates)])
    #expect(merges.reduce(client) { $0.applying($1) } == server)
    // Without the leaf in the merge, Firebase's clients remove its priority, because the priority is inside
    // the interval.
    let bare = RangeMerge(start: "a", end: "b", updates: .object([("b", .leaf(.string("y")))]))
    #expect(client.applying(bare) == value("y", nil))
    #expect(
      client.applying(RangeMerge(start: "c", end: nil, updates: .empty)) == client, "a is not in the interval"
    )
  }

  @Test("A changed priority of a list is found even if all its keys sort before .priority")
  func lastPriority() throws {
    let client = Node.object([("1", .leaf(.string("a"))), ("2", .leaf(.string("b")))], priority: .number(1))
    for server in [client.with(priority: .number(2)), client.with(priority: nil)] {
      let merges = server.rangeMerges(against: CompoundHash(of: client))
      #expect(merges?.reduce(client) { $0.applying($1) } ?? server == server)
      #expect(merges != [])
      // Firebase's mobile clients omit such a priority from the hash.
      let peerHash = CompoundHash(of: client.with(priority: nil))
      let mobileMerges = server.rangeMerges(against: peerHash)
      if server.priority == nil { continue }
      #expect(mobileMerges?.reduce(client) { $0.applying($1) } ?? server == server)
      #expect(mobileMerges != [])
    }
  }

  @Test("A removed priority is also removed at a peer whose hash omits priorities", arguments: 0..<3)
  func unseenPriority(depth: Int) throws {
    let list = Node.object(
      [("-Na", .object([("1", .leaf(.int(1), priority: .number(4)))])), ("-Nb", .leaf(.int(2)))],
      priority: .number(3))
    let parent = Path(keys: Array(repeating: "d", count: depth))
    func value(_ list: Node, _ text: String) -> Node {
      let node = Node.empty.setting(parent.child("list"), to: list)
      return node.setting("z", to: .leaf(.string(text))).setting(
        "more", to: .leaf(.string(String(repeating: "m", count: 2_000))))
    }
    let client = value(list, "old")
    let server = value(list.with(priority: nil), "new")
    let peerHash = CompoundHash(of: value(list.with(priority: nil), "old")) { _, _ in true }
    let merges = try #require(server.rangeMerges(against: peerHash))
    #expect(merges.reduce(client) { $0.applying($1) } == server)
    #expect(merges.count < 5)
  }

  @Test(
    "A leaf at an interval's start is outside, at its end inside; the opposite holds for descendants")
  func intervalEnds() {
    let old = Node.empty.setting("a", to: .leaf(.int(1))).setting("b/x", to: .leaf(.int(2)))
      .setting("c/y", to: .leaf(.int(3))).setting("d", to: .leaf(.int(4)))
    func apply(_ start: Path?, _ end: Path?, _ updates: Node) -> Node {
      old.applying(RangeMerge(start: start, end: end, updates: updates))
    }
    let b = Node.object([("b", .leaf(.int(9)))])
    #expect(apply(nil, nil, b) == b)
    #expect(apply("a", "b", .empty) == old, "an object at the end keeps its children")
    #expect(apply("a", "b/x", .empty) == old.setting("b", to: .empty))
    #expect(apply("b", "c", .empty) == old.setting("b", to: .empty), "children of the start are inside")
    #expect(apply("a", "b/x", b) == old.setting("b", to: .leaf(.int(9))))
    #expect(apply("c/y", "d", .empty) == old.setting("d", to: .empty))
    #expect(apply("d", nil, .object([("e", .leaf(.int(5)))])) == old.setting("e", to: .leaf(.int(5))))
  }
}
