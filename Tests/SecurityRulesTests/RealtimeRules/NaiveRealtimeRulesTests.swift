// Compares decisions of the policy with decisions of a naive evaluator, on random rules, trees, users and operations.
//
// Each seed makes a program: a random rules file, and random operations on random trees. `make realtime-rules N=20000
// SEED=7` runs 20,000 programs from seed 7.

import Access
import Foundation
import JSON
import NaiveRealtimeRules
import RealtimeModel
import SecurityRules
import Testing

@Suite("Random Realtime Database rules against a naive evaluator", .timeLimit(.minutes(60)))
struct NaiveRealtimeRulesTests {
  private static let decisionsPerProgram = 60
  private static let now: Int64 = 1_700_000_000_000

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  @Test("Every decision equals the decision of the naive evaluator")
  func decisions() throws {
    let programs = Self.number("HEARTH_REALTIME_RULES") ?? 500
    let first = Self.number("HEARTH_REALTIME_RULES_SEED") ?? 0
    var counts: [Bool: Int] = [true: 0, false: 0]
    for seed in first..<(first + programs) {
      var program = try DecisionProgram(seed: UInt64(seed), now: Self.now)
      for _ in 0..<Self.decisionsPerProgram {
        guard let isAllowed = try program.step() else { return }
        counts[isAllowed, default: 0] += 1
      }
    }
    print("naive rules: \(counts[true] ?? 0) allowed and \(counts[false] ?? 0) denied, equal on both sides")
    let total = programs * Self.decisionsPerProgram
    #expect((counts[true] ?? 0) > total / 5 && (counts[false] ?? 0) > total / 5)
  }
}

/// A random rules file, and decisions about random operations on random trees.
private struct DecisionProgram {
  private let seed: UInt64
  private let now: Int64
  private let text: String
  private let naive: NaiveRealtimeRuleset
  private let policy: RealtimeRulesPolicy
  private var random: RandomRealtimeRules
  private var tree = Node.empty
  private var plain = PlainTree()

  init(seed: UInt64, now: Int64) throws {
    self.seed = seed
    self.now = now
    random = RandomRealtimeRules(seed: seed, readsTime: true)
    let file = random.file()
    text = String(decoding: file.json(), as: UTF8.self)
    naive = try NaiveRealtimeRuleset(file["rules"] ?? .null)
    policy = RealtimeRulesPolicy(try RealtimeRuleset(file.json()))
  }

  /// Decides about one operation. Returns the decision; nil if the evaluators disagree.
  mutating func step() throws -> Bool? {
    if random.below(8) == 0 {
      let value = random.value(depth: 3)
      (tree, plain) = (try Node(json: value.json()), PlainTree(value))
    }
    let auth = random.auth()
    let caller = NaiveRealtimeRuleset.Caller(auth: auth, now: now)
    let operation: RealtimeAccess.Operation
    let expected: Bool
    var (after, plainAfter) = (tree, plain)
    if random.below(2) == 0 {
      let path = random.path()
      let query = random.query()
      expected = naive.allowsRead(path.units, query, caller, plain)
      operation =
        random.below(2) == 0 ? .read(Path(path), try query.spec) : .listen(Path(path), try query.spec)
    } else {
      let changes = try changes()
      for (path, value) in changes {
        after = after.setting(Path(path), to: try Node(json: value.json()))
        plainAfter.set(path.units[...], to: PlainTree(value))
      }
      expected = naive.allowsWrite(changes.map(\.path.units), caller, from: plain, to: plainAfter)
      let paths = changes.map { Path($0.path) }
      operation =
        paths.count == 1 ? .write(paths[0]) : random.below(2) == 0 ? .merge(paths) : .onDisconnect(paths)
    }
    let view = NodeTreeView(before: tree, after: after, now: now)
    let denial = try policy.decide(principal(auth), operation, view: view).denial
    guard (denial == nil) == expected else {
      Issue.record(
        """
        seed \(seed): \(operation) by \(auth) is \(expected ? "allowed" : "denied") by the naive evaluator; \
        the policy: \(denial?.reason ?? "allowed")
        \(text)
        """)
      return nil
    }
    if expected, operation.changesData { (tree, plain) = (after, plainAfter) }
    return expected
  }

  /// One to three changes in the order in which the engine applies them. No change is inside another change.
  private mutating func changes() throws -> [(path: [String], value: JSONValue)] {
    var changes: [(path: [String], value: JSONValue)] = []
    for _ in 0..<(random.below(2) == 0 ? 1 : 3) {
      var path = random.path()
      if random.below(8) == 0 { path.append(".priority") }
      let isApart = !changes.contains {
        Path($0.path).contains(Path(path)) || Path(path).contains(Path($0.path))
      }
      guard isApart else { continue }
      let value: JSONValue =
        path.last == ".priority"
        ? .int(Int64(random.below(3))) : random.below(4) == 0 ? .null : random.value()
      changes.append((path, value))
    }
    let sorted = changes.sorted { Path($0.path) < Path($1.path) }
    return sorted.filter { $0.path.last != ".priority" } + sorted.filter { $0.path.last == ".priority" }
  }

  /// A user whose `auth` has these members: the user of a token, or a user as whom an administrator acts.
  private mutating func principal(_ auth: JSONValue) -> Principal {
    guard var claims = auth.object else { return .nobody }
    if random.below(2) == 0 {
      return Principal(.user(User(id: "", claims: Claims(claims), isOverride: true)))
    }
    claims = auth["token"]?.object ?? claims
    claims["firebase"] = .object(["sign_in_provider": .string("password")])
    return Principal(.user(User(claims)))
  }
}

extension [String] {
  /// The path in the form that the naive evaluator accepts.
  fileprivate var units: [Units] { map { Units($0.utf16) } }
}

extension Path {
  fileprivate init(_ keys: [String]) { self.init(keys: keys.map { ChildKey($0) }) }
}
