// Plays the vectors that were recorded from Google's emulator: compilation, expressions, and the decisions of requests.
// A vector is a case with its expected result, in a JSON file.

import FirestoreModel
import JSON
import SecurityRules
import Testing

@Suite(
  "Recorded cases of Firestore rules", .enabled(if: RuleVectors.areGiven, "HEARTH_CONFORMANCE is not set")
)
struct FirestoreRuleVectorTests {
  /// The verdicts of the emulator that the files mark as quirks and that this project does not follow. The keys are
  /// the starts of the ids of their cases; the values are the reasons.
  private static let knownDifferences = [
    "lookups.create.6376d7af": "get() of a missing document is null, as in later emulators",
    "lookups.list.6376d7af": "get() of a missing document is null, as in later emulators",
    "lookups.after.batch-reversed.after-third-null": "getAfter() of a missing document is null",
    "lookups.after.single.after-third-null": "getAfter() of a missing document is null",
    "lookups.budget.": "queries may read 10 documents, as published",
    "numbers.math": "math.isInfinite is documented",
    "numbers.int.41c6923d": "int() takes ASCII digits only",
    "operators.limits.1020f300": "an overflow is an error",
    "operators.limits.fd58c69d": "an overflow is an error",
    "time.value-string.b60ced34": "leap seconds do not exist in timestamps",
  ]

  /// The cases that the files do not mark as quirks, but in which this project gives another verdict than the emulator.
  private static let otherVerdicts = [
    "maps.order.71f656a8": "stored maps are ordered by key, whatever order the client wrote"
  ]

  @Test("every case has the recorded verdict", arguments: RuleVectors.categories)
  func verdicts(category: String) throws {
    let cases = try RuleVectors.cases(of: category)
    #expect(!cases.isEmpty)
    var differenceCount = 0
    for vector in cases {
      guard let text = try difference(vector) else { continue }
      differenceCount += 1
      let isKnown =
        Self.otherVerdicts[vector.id] != nil
        || vector.isQuirk && Self.knownDifferences.keys.contains { vector.id.hasPrefix($0) }
      #expect(isKnown, "\(vector.id): \(text)")
    }
    print("\(category): \(cases.count - differenceCount) of \(cases.count) cases as recorded")
  }

  private func difference(_ vector: VectorCase) throws -> String? {
    if let expressions = vector.json["expressions"]?.array {
      return try expressionDifference(vector, expressions)
    }
    let source = vector.json["rules"]?.string ?? ""
    let ruleset: FirestoreRuleset
    do {
      ruleset = try FirestoreRuleset(compiling: source)
    } catch {
      return compileDifference(vector, error.issues, isRejected: true)
    }
    if vector.json["issues"] != nil { return compileDifference(vector, ruleset.warnings, isRejected: false) }
    return try requestDifference(vector, ruleset)
  }

  // MARK: Compilation

  private func compileDifference(_ vector: VectorCase, _ issues: [RulesIssue], isRejected: Bool) -> String? {
    guard isRejected == (vector.json["verdict"]?.string == "compile-error") else {
      return isRejected ? "rejected: \(RulesError(issues))" : "accepted"
    }
    let recorded = vector.json["issues"]?.array ?? []
    if isRejected {
      guard let first = recorded.first(where: { $0["severity"]?.string == "ERROR" }) else { return nil }
      let position = issues.first { $0.severity == .error }?.position
      if first["line"]?.integer == position.map({ Int64($0.line) }),
        first["column"]?.integer == position.map({ Int64($0.column) })
      {
        return nil
      }
      return
        "first error at \(first["line"]?.integer ?? -1):\(first["column"]?.integer ?? -1), here \(RulesError(issues))"
    }
    let expected = Set(
      recorded.map { "\($0["line"]?.integer ?? 0):\($0["column"]?.integer ?? 0) \($0["text"]?.string ?? "")" }
    )
    let actual = Set(issues.map { "\($0.position?.line ?? 0):\($0.position?.column ?? 0) \($0.text)" })
    return expected == actual
      ? nil : "warnings \(expected.subtracting(actual)), here \(actual.subtracting(expected))"
  }

  // MARK: Expressions

  private func expressionDifference(_ vector: VectorCase, _ expressions: [JSONValue]) throws -> String? {
    var differences: [String] = []
    for expression in expressions {
      let text = expression["expression"]?.string ?? ""
      let result = try result(of: text, vector)
      if result != expression["result"]?.string {
        differences.append("\(text): \(expression["result"]?.string ?? ""), here \(result)")
      }
    }
    return differences.isEmpty ? nil : differences.joined(separator: "; ")
  }

  private func result(of expression: String, _ vector: VectorCase) throws -> String {
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
    if let fields = vector.json["fields"] {
      documents["e0/x"] = try VectorDecoding.fields(fields)
      documents["n0/x"] = documents["e0/x"]
    }
    let player = RuleVectorPlayer(ruleset, documents: documents)
    let outcomes = try ["e0/x", "n0/x"].map { path in
      try player.play(
        .object(["caller": vector.json["caller"] ?? .null, "kind": .string("get"), "path": .string(path)]))
    }
    return outcomes == [.allow, .deny] ? "true" : outcomes == [.deny, .allow] ? "false" : "error"
  }

  // MARK: Requests

  private func requestDifference(_ vector: VectorCase, _ ruleset: FirestoreRuleset) throws -> String? {
    var documents: [ResourcePath: MapValue] = [:]
    for member in vector.json["documents"]?.object?.members ?? [] {
      documents[ResourcePath(splitting: member.key)] = try VectorDecoding.fields(member.value)
    }
    let player = RuleVectorPlayer(ruleset, documents: documents)
    for step in vector.steps {
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
