// Fuzz target: conditions of Firestore rules over a document with extreme values. A condition that compiles is decided
// without a crash, always the same way, and never together with its negation. Its explanation agrees with the verdict.

import FirestoreModel
import SecurityRules

func fuzzRuleExpressions(_ input: UnsafeRawBufferPointer) throws {
  let condition = String(decoding: input, as: UTF8.self)
  guard input.count <= 4096, let rules = ruleset(condition), let negated = ruleset("!(\(condition))") else {
    return
  }
  for method in [RuleMethod.get, .create, .update, .delete] {
    let verdict = decide(rules, method)
    try require(decide(rules, method) == verdict, "\(method) has two verdicts")
    try require(!verdict || !decide(negated, method), "\(method) is allowed by a condition and its negation")
  }
  let explanation = rules.explainGet("c/x", document, context)
  let isAllowed = decide(rules, .get)
  try require(
    isAllowed || explanation.statements.count == 1, "a denial has \(explanation.statements.count) statements")
  let filter = FilterTerm.field(FieldFilter(FieldPath(field: "i"), .equal, .integer(.min)))
  let query = RuleQuery(parent: .root, collectionID: "c", alternatives: [[filter], []])
  _ = try rules.decideQuery(query, context)
  if let tautology = ruleset("true || (\(condition))") {
    try require(decide(tautology, .get), "an operand behind a decisive one changes the verdict")
  }
}

/// Rules with one condition; nil if it does not compile.
private func ruleset(_ condition: String) -> FirestoreRuleset? {
  try? FirestoreRuleset(
    compiling: """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents/c/{id} { allow read, write: if \(condition)
        ; }
      }
      """)
}

private func decide(_ rules: FirestoreRuleset, _ method: RuleMethod) -> Bool {
  guard method != .get else { return rules.decideGet([("c/x", document)], context).isAllowed }
  let change = RuleChange(
    path: "c/x", method: method, before: method == .create ? nil : document,
    after: method == .delete ? nil : document)
  return rules.decideChanges([change], context).isAllowed
}

private var context: FirestoreRuleset.Context {
  FirestoreRuleset.Context(
    database: "(default)",
    caller: RuleCaller(uid: "u", claims: ["admin": .boolean(true), "level": .integer(.max)]),
    time: Timestamp(seconds: 1_764_000_000), documents: OneDocument())
}

/// A source in which every other document is the same.
private struct OneDocument: RuleDocumentSource {
  func fields(of path: ResourcePath, afterWrites: Bool) -> MapValue? {
    path.segments.last == "missing" ? nil : document
  }
}

private let document: MapValue = [
  "i": .integer(.min), "j": .integer(.max), "n": .integer(-1), "f": .double(-0.0), "h": .double(.infinity),
  "q": .double(.nan), "s": .string("a\u{0}é😀\u{301}"), "e": .string(""), "b": .boolean(true), "z": .null,
  "l": .array([.integer(1), .double(1), .double(.nan), .null, .array([]), .map([:])]),
  "m": .map(["a": .map(["a": .integer(0)]), "": .null]), "y": .bytes([0, 255]), "v": .vector([.nan, 1]),
  "t": .timestamp(Timestamp(seconds: -62_135_596_800)),
  "u": .timestamp(Timestamp(seconds: 253_402_300_799, nanoseconds: 999_999_999)),
  "g": .geoPoint(GeoPoint(latitude: 90, longitude: -180)),
]
