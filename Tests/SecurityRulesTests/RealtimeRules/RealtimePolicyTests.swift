// Tests the policy of Realtime Database rules: its costs, its limits, and the dependencies of its decisions.

import Access
import RealtimeModel
import SecurityRules
import Testing

@Suite("The policy of Realtime Database rules", .timeLimit(.minutes(1)))
struct RealtimePolicyTests {
  private func policy(_ rules: String) throws -> RealtimeRulesPolicy {
    RealtimeRulesPolicy(try RealtimeRuleset(Array(#"{"rules":\#(rules)}"#.utf8)))
  }

  private func leaves(_ count: Int) -> Node {
    .object((0..<count).map { (ChildKey("k\($0)"), .leaf(.int(Int64($0)))) })
  }

  @Test("The cost of a read depends on the rules on its path, not on the size of the tree")
  func readCost() throws {
    let policy = try policy(
      #"{"big":{".read":"root.child('big').hasChildren() && data.exists() && data.hasChild('k7')"}}"#)
    var reads: [Int] = []
    for count in [10, 20_000] {
      let view = NodeTreeView(before: Node.empty.setting("big", to: leaves(count)))
      #expect(try policy.decide(.nobody, .read("big", .default), view: view).denial == nil)
      reads.append(view.reads)
    }
    // The root's child and `data` are the same location, which is read once.
    #expect(reads == [2, 2])
  }

  @Test("A write validates written locations and their parents, never siblings")
  func writeCost() throws {
    let policy = try policy(
      #"{".write":true,"l":{".validate":"newData.hasChildren()","$k":{".validate":"newData.isNumber()"}}}"#)
    let before = Node.empty.setting("l", to: leaves(20_000)).setting("l/bad", to: .leaf(.string("x")))
    let view = NodeTreeView(before: before, after: before.setting("l/k3", to: .leaf(.int(5))))
    #expect(try policy.decide(.nobody, .write("l/k3"), view: view).denial == nil)
    #expect(view.reads < 10, "\(view.reads)")
    let invalid = NodeTreeView(before: before, after: before.setting("l/k3", to: .leaf(.string("y"))))
    #expect(try policy.decide(.nobody, .write("l/k3"), view: invalid).denial != nil)
  }

  @Test("Every child of a large write is validated", arguments: [0, 255, 256, 257, 511, 999])
  func largeWrite(invalidIndex: Int) throws {
    let policy = try policy(
      #"{".write":true,"l":{"k5":{},"$k":{".validate":"newData.isNumber() && $k.beginsWith('k')"}}}"#)
    for (key, isAllowed) in [("k\(invalidIndex)", invalidIndex == 5), ("k5", true), ("other", false)] {
      let after = Node.empty.setting("l", to: leaves(1000)).setting(Path("l/\(key)"), to: .leaf(.bool(true)))
      let decision = try policy.decide(.nobody, .write("l"), view: NodeTreeView(before: .empty, after: after))
      #expect((decision.denial == nil) == isAllowed, "\(key)")
    }
  }

  @Test("A decision about a listen names the locations that the granting rule read, and the time")
  func dependencies() throws {
    let policy = try policy(
      #"""
      {".read":"root.child('closed').val() == false && now > 5",
       "rooms":{"$r":{".read":"root.child('members/' + $r).hasChild(auth.uid)"}},
       "soon":{".read":"now > 0"}}
      """#)
    let view = NodeTreeView(before: Node.empty.setting("members/r1/u1", to: .leaf(.bool(true))))
    let user = Principal.user("u1")
    let room = try policy.decide(user, .listen("rooms/r1/x", .default), view: view)
    #expect(room.denial == nil && room.dependencies == ["members/r1/u1"] && !room.dependsOnTime)
    let soon = try policy.decide(user, .listen("soon", .default), view: view)
    #expect(soon.denial == nil && soon.dependencies.isEmpty && soon.dependsOnTime)
    let denied = try policy.decide(user, .listen("rooms/r2", .default), view: view)
    #expect(
      denied.denial?.reason
        == ".read of / in line 1 is false; .read of /rooms/r2 in line 2 is false", "\(denied)")
  }

  @Test("An update without paths changes nothing and is allowed")
  func emptyUpdate() throws {
    let view = NodeTreeView(before: .empty)
    #expect(try policy("{}").decide(.nobody, .merge([]), view: view).denial == nil)
  }

  @Test(
    "An expression that exceeds the budget is false and does not take long",
    arguments: [
      "root.child('t').val().replace('a', root.child('t').val()) != ''",
      "root.child('t').val().matches(/^(a|a|a|a|a)*b$/)",
      "(" + Array(repeating: "root.child('t').val().toUpperCase()", count: 200).joined(separator: " + ")
        + ") != ''",
    ])
  func budget(expression: String) throws {
    let policy = try policy(#"{".read":"\#(expression)"}"#)
    let text = String(repeating: "a", count: 1 << 20)
    let view = NodeTreeView(before: Node.empty.setting("t", to: .leaf(.string(text))))
    let denial = try policy.decide(.nobody, .read(.root, .default), view: view).denial
    #expect(denial?.reason.contains("the evaluation exceeds its budget") ?? false)
  }

  @Test("A large write is validated completely, since its budget grows with its locations")
  func budgetOfLargeWrites() throws {
    let policy = try policy(
      #"{".write":true,"$k":{".validate":"newData.isNumber() && newData.val() >= 0 && newData.val() < 1e9"}}"#
    )
    let view = NodeTreeView(before: .empty, after: leaves(60_000))
    #expect(try policy.decide(.nobody, .write(.root), view: view).denial == nil)
  }

  @Test(
    "A decision that needs more steps than remain is interrupted, not denied; a decision reduces the remaining steps",
    arguments: [0, 1, 50, 1_000, 10_000, 1_000_000])
  func interruption(steps: Int) throws {
    let policy = try policy(#"{".write":true,"$k":{".validate":"newData.val() + 1 > 0 && now > 0"}}"#)
    let work = DecisionWork(steps: steps)
    let view = NodeTreeView(before: .empty, after: leaves(1_000), work: work)
    do {
      #expect(try policy.decide(.nobody, .write(.root), view: view).denial == nil)
      #expect(steps > 1_000 && work.steps > 0 && work.steps < steps - 1_000)
    } catch is DecisionInterrupted { #expect(steps <= 10_000 && work.steps == 0) }
  }

  @Test("A regular expression decides a written text of 3 MB")
  func largeText() throws {
    let policy = try policy(#"{".write":true,"t":{".validate":"newData.val().matches(/^a+b?$/)"}}"#)
    for (end, isAllowed) in [("b", true), ("c", false)] {
      let text = String(repeating: "a", count: (3 << 20) - 1) + end
      let view = NodeTreeView(before: .empty, after: Node.empty.setting("t", to: .leaf(.string(text))))
      let denial = try policy.decide(.nobody, .write("t"), view: view).denial
      #expect((denial == nil) == isAllowed)
    }
  }

  @Test(
    "A priority written to a missing location validates nothing; the priority of a location with children validates them"
  )
  func missingPriority() throws {
    let policy = try policy(
      #"{".write":true,".validate":"newData.hasChild('b')","a":{"$k":{".validate":"newData.val() == 1"}}}"#)
    func isAllowed(_ values: [(Path, Int64)]) throws -> Bool {
      let tree = values.reduce(Node.empty) { $0.setting($1.0, to: .leaf(.int($1.1))) }
      let after = tree.descendant("a").isEmpty ? tree : tree.setting("a/.priority", to: .leaf(.int(1)))
      let view = NodeTreeView(before: tree, after: after)
      return try policy.decide(.nobody, .write("a/.priority"), view: view).denial == nil
    }
    #expect(try isAllowed([("c", 1)]))
    #expect(try isAllowed([("a/x", 1), ("b", 1)]))
    #expect(try !isAllowed([("a/x", 1)]))
    #expect(try !isAllowed([("a/x", 1), ("a/y", 2), ("b", 1)]))
  }

  @Test("An auth override without members makes `auth` an object, not null")
  func emptyOverride() throws {
    let policy = try policy(#"{".read":"auth != null && auth.uid == null"}"#)
    let caller = Principal(.user(User(id: "", claims: .none, isOverride: true)))
    let view = NodeTreeView(before: .empty)
    #expect(try policy.decide(caller, .read("a", .default), view: view).denial == nil)
    #expect(try policy.decide(.nobody, .read("a", .default), view: view).denial != nil)
  }

  @Test("The compiled size of a file's regular expressions is limited")
  func patternSize() {
    let rule = #"".read":"auth.uid.matches(/a{900}b{900}c{900}/)""#
    func rules(_ count: Int) -> [UInt8] {
      Array(#"{"rules":{\#((0..<count).map { #""k\#($0)":{\#(rule)}"# }.joined(separator: ","))}}"#.utf8)
    }
    #expect(throws: Never.self) { try RealtimeRuleset(rules(100)) }
    #expect(throws: RealtimeModel.RulesError.self) { try RealtimeRuleset(rules(120)) }
  }

  @Test("Rules that permit everything need no evaluation")
  func openRules() throws {
    #expect(try policy(#"{".read":true,".write":true}"#).allowsEverything(.nobody))
    #expect(try !policy(#"{".read":true,".write":true,"a":{".validate":"true"}}"#).allowsEverything(.nobody))
    #expect(try !policy(#"{".read":"true",".write":true}"#).allowsEverything(.nobody))
  }
}
