// Fuzz target: rules files of both databases. An accepted file reads the same as plain JSON and with comments, and its
// rules decide without a crash. A rejected file is rejected at a position inside it.

import Access
import FirestoreModel
import JSON
import RealtimeModel
import SecurityRules

func fuzzRules(_ input: UnsafeRawBufferPointer) throws {
  try readRealtimeRules(Array(input))
  try readFirestoreRules(String(decoding: input, as: UTF8.self))
}

private func readRealtimeRules(_ bytes: [UInt8]) throws {
  let ruleset: RealtimeRuleset
  do throws(RealtimeModel.RulesError) {
    ruleset = try RealtimeRuleset(bytes)
  } catch {
    let lines = bytes.count { $0 == 0x0A } + 1
    try require((1...RulesFile.maximumProblems).contains(error.problems.count), "no problem, or too many")
    for problem in error.problems {
      try require(
        (1...lines).contains(problem.line) && (1...bytes.count + 1).contains(problem.column),
        "\(problem) is not a position of the text")
    }
    return
  }
  let file = ruleset.file
  try decide(RealtimeRulesPolicy(ruleset))
  let plain = Array(file.strictText.utf8)
  try require((try? JSONValue(json: plain)) != nil, "the plain form is no JSON")
  let again = try require(try? RulesFile(plain), "the plain form is rejected")
  try require(again.strictText == file.strictText, "the plain form has another plain form")
  try require(again.root.isEqual(to: file.root), "the plain form has other rules")
  try require(again.root.hasSameIndexes(as: file.root), "the plain form has other indexes")
}

/// Decides reads and writes of several callers, over trees of every kind of value. Only a failure of the view may be
/// thrown, and a decision made again is the same.
private func decide(_ policy: RealtimeRulesPolicy) throws {
  let claims: Claims = [
    "sub": .string("u"), "role": .string("a"), "n": .double(0.5), "list": .array([.null, .string("a")]),
  ]
  let callers: [Principal] = [
    .nobody, .user("u", claims: claims), Principal(.user(User(id: "", claims: claims, isOverride: true))),
  ]
  let query = QuerySpec(
    ordering: .child("a"), start: .init(.string("a")), end: .init(.string("a")), limit: .first(3))
  for path in [Path.root, "a/b", "l/x/y", "a/.priority"] {
    for caller in callers {
      for leaf in [LeafValue.string("a😀\u{301}"), .int(.max), .double(-0.5), .bool(true)] {
        let view = LeafTreeView(leaf: leaf)
        for operation in [
          RealtimeAccess.Operation.read(path.dataPath, query), .listen(path.dataPath, .default), .write(path),
          .merge([path, "z"]),
        ] {
          let decision = try policy.decide(caller, operation, view: view)
          let again = try policy.decide(caller, operation, view: view)
          try require(decision.denial?.reason == again.denial?.reason, "\(operation) has two decisions")
        }
      }
    }
  }
}

/// A tree in which every location below the first two levels is a leaf.
private struct LeafTreeView: TreeView {
  let leaf: LeafValue

  var now: Int64 { 1_700_000_000_000 }
  func content(at path: Path, _ state: TreeState) -> Node.Content { path.count < 2 ? .children : .leaf(leaf) }
  func priority(at path: Path, _ state: TreeState) -> Priority? {
    path.count.isMultiple(of: 2) ? .number(1) : nil
  }
  func childKeys(at path: Path, after: ChildKey?, limit: Int, _ state: TreeState) -> [ChildKey] {
    path.count < 2 && after == nil && limit > 1 ? ["a", "é"] : []
  }
}

extension RuleNode {
  fileprivate func isEqual(to other: RuleNode) -> Bool {
    read == other.read && write == other.write && validate == other.validate && indexes == other.indexes
      && children.count == other.children.count
      && children.allSatisfy { other.children[$0.key]?.isEqual(to: $0.value) ?? false }
      && wildcard?.name == other.wildcard?.name
      && (wildcard?.node).map { other.wildcard?.node.isEqual(to: $0) ?? false } ?? true
  }
}

private func readFirestoreRules(_ text: String) throws {
  do throws(SecurityRules.RulesError) {
    _ = try FirestoreRuleset(compiling: text)
  } catch {
    try require(!error.issues.isEmpty, "a rejected file has no issue")
    let lines = text.utf8.count { $0 == 0x0A || $0 == 0x0D } + 1
    // The position of an empty file is 0:0, as in Google's compiler.
    for position in error.issues.compactMap(\.position) where position.line != 0 || position.column != 0 {
      try require(
        (1...lines).contains(position.line) && (1...text.utf16.count + 1).contains(position.column),
        "\(position) is not a position of the text")
    }
    return
  }
  try require(
    (try? FirestoreRuleset(compiling: "/* a */ \(text)\n// b")) != nil, "comments around it make a text wrong"
  )
}
