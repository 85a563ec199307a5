// Plays the vectors that were recorded from Google's emulator: compilation, expressions, and the decisions of requests.

import FirestoreModel
import JSON
import SecurityRules
import Testing

@Suite("Firestore rules of the shared vectors", .enabled(if: RuleVectors.areGiven, "HEARTH_CONFORMANCE is not set"))
struct FirestoreRuleVectorTests {
  /// A case that is answered otherwise than recorded.
  struct Difference {
    var id: String
    var text: String
    var isQuirk: Bool
  }

  @Test("every case has the recorded verdict", arguments: RuleVectors.categories)
  func verdicts(category: String) throws {
    let cases = try RuleVectors.cases(of: category)
    #expect(!cases.isEmpty)
    var differences: [Difference] = []
    for own in cases {
      if let text = try difference(own) {
        differences.append(Difference(id: own.id, text: text, isQuirk: own.isQuirk))
      }
    }
    let defects = differences.filter { !$0.isQuirk }
    print("\(category): \(cases.count - differences.count) of \(cases.count), \(differences.count - defects.count) quirks")
    for defect in defects.prefix(40) { print("  \(defect.id): \(defect.text)") }
    #expect(defects.isEmpty, "\(defects.map(\.id))")
  }

  private func difference(_ own: VectorCase) throws -> String? {
    if let expressions = own.json["expressions"]?.array { return try expressionDifference(own, expressions) }
    let source = own.json["rules"]?.string ?? ""
    let ruleset: FirestoreRuleset
    do {
      ruleset = try FirestoreRuleset(compiling: source)
    } catch {
      return compileDifference(own, error.issues, isRejected: true)
    }
    if own.json["issues"] != nil { return compileDifference(own, ruleset.warnings, isRejected: false) }
    return try requestDifference(own, ruleset)
  }

  // MARK: Compilation

  private func compileDifference(_ own: VectorCase, _ issues: [RulesIssue], isRejected: Bool) -> String? {
    guard isRejected == (own.json["verdict"]?.string == "compile-error") else {
      return isRejected ? "rejected: \(RulesError(issues))" : "accepted"
    }
    let recorded = own.json["issues"]?.array ?? []
    if isRejected {
      guard let first = recorded.first(where: { $0["severity"]?.string == "ERROR" }) else { return nil }
      let position = issues.first { $0.severity == .error }?.position
      if first["line"]?.integer == position.map({ Int64($0.line) }),
        first["column"]?.integer == position.map({ Int64($0.column) })
      {
        return nil
      }
      return "first error at \(first["line"]?.integer ?? -1):\(first["column"]?.integer ?? -1), here \(RulesError(issues))"
    }
    let expected = Set(recorded.map { "\($0["line"]?.integer ?? 0):\($0["column"]?.integer ?? 0) \($0["text"]?.string ?? "")" })
    let actual = Set(issues.map { "\($0.position?.line ?? 0):\($0.position?.column ?? 0) \($0.text)" })
    return expected == actual ? nil : "warnings \(expected.subtracting(actual)), here \(actual.subtracting(expected))"
  }

  // MARK: Expressions

  private func expressionDifference(_ own: VectorCase, _ expressions: [JSONValue]) throws -> String? {
    var differences: [String] = []
    for expression in expressions {
      let text = expression["expression"]?.string ?? ""
      let result = try result(of: text, own)
      if result != expression["result"]?.string {
        differences.append("\(text): \(expression["result"]?.string ?? ""), here \(result)")
      }
    }
    return differences.isEmpty ? nil : differences.joined(separator: "; ")
  }

  private func result(of expression: String, _ own: VectorCase) throws -> String {
    let source = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents {
          match /e0/{id} { allow get: if \(expression); }
          match /n0/{id} { allow get: if !(\(expression)); }
        }
      }
      """
    guard let ruleset = try? FirestoreRuleset(compiling: source) else { return "compile-error" }
    var documents: [ResourcePath: MapValue] = [:]
    if let fields = own.json["fields"] {
      documents["e0/x"] = try VectorDecoding.fields(fields)
      documents["n0/x"] = documents["e0/x"]
    }
    let player = RuleVectorPlayer(ruleset, documents: documents)
    let outcomes = try ["e0/x", "n0/x"].map { path in
      try player.play(
        .object(["caller": own.json["caller"] ?? .null, "kind": .string("get"), "path": .string(path)]))
    }
    return outcomes == [.allow, .deny] ? "true" : outcomes == [.deny, .allow] ? "false" : "error"
  }

  // MARK: Requests

  private func requestDifference(_ own: VectorCase, _ ruleset: FirestoreRuleset) throws -> String? {
    var documents: [ResourcePath: MapValue] = [:]
    for member in own.json["documents"]?.object?.members ?? [] {
      documents[ResourcePath(splitting: member.key)] = try VectorDecoding.fields(member.value)
    }
    let player = RuleVectorPlayer(ruleset, documents: documents)
    for step in own.steps {
      guard let request = step["request"], let verdict = step["verdict"]?.string else { continue }
      // The endpoints reject malformed requests before any rule.
      if verdict == "invalid", step["status"]?.string == "INVALID_ARGUMENT" { continue }
      let outcome = try player.play(request)
      let expected: [RuleVectorPlayer.Outcome] =
        switch verdict {
        case "allow": [.allow]
        case "deny": [.deny]
        default: [.failed, .allow]
        }
      if !expected.contains(outcome) { return "\(step["name"]?.string ?? "") \(verdict), here \(outcome)" }
    }
    return nil
  }
}
