// Compares the texts of denials with the texts that were recorded from Google's emulator.
//
// Google's emulator lists the reasons of two evaluations, the first of them without the stored document. It also
// lists the reasons of the other documents of a commit. This server's text has one reason for each statement, which must
// be one of the recorded reasons.

import FirestoreModel
import JSON
import SecurityRules
import Testing

@Suite("Texts of denials", .enabled(if: RuleVectors.areGiven, "HEARTH_CONFORMANCE is not set"))
struct DenialTextVectorTests {
  /// The cases in which a statement has another outcome than recorded, although both outcomes deny. The keys are the
  /// starts of their ids; the values are the reasons.
  private static let otherOutcomes = [
    "lookups.get.da384ac2": "get() of a missing document is null, as in later emulators",
    "lookups.get.671998cc": "get() of a missing document is null, as in later emulators",
    "lookups.create.da384ac2": "get() of a missing document is null, as in later emulators",
    "lookups.create.ef03a2af": "get() of a missing document is null, as in later emulators",
    "lookups.anonymous.da384ac2": "get() of a missing document is null, as in later emulators",
    "lookups.list.da384ac2": "get() of a missing document is null, as in later emulators",
    "queries.list.8b0f96eb": "hasAny() that the filters do not decide has no value, so that ! does not allow",
    "queries.list.2680f84d": "hasAny() that the filters do not decide has no value, so that ! does not allow",
    "queries.path.56f9a4d0": "string() of an unknown path has no value, so that ! does not allow",
    "aggregations.list.cf253bce": "a listing without a page size has no limit",
  ]

  /// One reason of a text: an outcome, a method and a line.
  private struct Reason: Hashable {
    var outcome: String
    var suffix: String

    var isFalse: Bool { outcome == "false" }
  }

  /// The reasons of a text; nil for a text without positions.
  private static func reasons(in text: String) -> [Reason]? {
    var reasons: [Reason] = []
    var rest = text[...]
    if rest.first == "\n" { rest.removeFirst() }
    while !rest.isEmpty {
      guard let suffix = rest.firstRange(of: /\ for '[a-z]+' @ L[0-9]+(, |$)/) else { return nil }
      var name = rest[suffix]
      if name.hasSuffix(", ") { name.removeLast(2) }
      reasons.append(Reason(outcome: String(rest[..<suffix.lowerBound]), suffix: String(name)))
      rest = rest[suffix.upperBound...]
    }
    return reasons
  }

  @Test(
    "an emulator's denial has the recorded statements, each with the recorded outcome",
    arguments: [
      "functions", "limits", "lookups", "matching", "request-resource", "queries", "aggregations", "writes",
    ])
  func texts(category: String) throws {
    var (count, sameWords) = (0, 0)
    for vector in try RuleVectors.cases(of: category) where !vector.steps.isEmpty && !vector.isQuirk {
      guard let ruleset = try? FirestoreRuleset(compiling: vector.json["rules"]?.string ?? "") else {
        continue
      }
      var documents: [ResourcePath: MapValue] = [:]
      for member in vector.json["documents"]?.object?.members ?? [] {
        documents[ResourcePath(splitting: member.key)] = try VectorDecoding.fields(member.value)
      }
      let player = RuleVectorPlayer(ruleset, documents: documents)
      for step in vector.steps {
        // The endpoints reject malformed requests before any rule.
        guard let request = step["request"], step["status"]?.string != "INVALID_ARGUMENT" else { continue }
        let outcome = try player.play(request)
        guard outcome == .deny, step["verdict"]?.string == "deny", let recorded = step["message"]?.string,
          let text = player.denialText, !recorded.hasSuffix("require admin authentication.")
        else { continue }
        count += 1
        if recorded == text {
          sameWords += 1
          continue
        }
        // No statement covers the denied document. The recorded text names the statements of another document.
        if text == "No matching allow statements" {
          #expect(["commit", "batchGet"].contains(request["kind"]?.string), "\(vector.id)")
          continue
        }
        let expected = Set(try #require(Self.reasons(in: recorded), "\(vector.id): \(recorded)"))
        let actual = try #require(Self.reasons(in: text), "\(vector.id): \(text)")
        if Set(actual).isSubset(of: expected) { sameWords += 1 }
        for reason in actual {
          let same = expected.filter { $0.suffix == reason.suffix }
          let isSame =
            same.contains { $0.isFalse == reason.isFalse }
            || Self.belongsToOtherMethod(reason, actual) && !same.isEmpty
          let isKnown = !same.isEmpty && Self.otherOutcomes.keys.contains { vector.id.hasPrefix($0) }
          #expect(isSame || isKnown, "\(vector.id): \(text), recorded \(recorded)")
        }
      }
    }
    print("\(category): \(count) denials, \(sameWords) in the recorded words")
    #expect(count > 0)
  }

  /// Whether the statement may belong to the method that the write did not need: create if the document existed, else
  /// update. Google's emulator evaluates it without the stored document.
  private static func belongsToOtherMethod(_ reason: Reason, _ reasons: [Reason]) -> Bool {
    let methods = [" for 'create'", " for 'update'"]
    return methods.contains { reason.suffix.hasPrefix($0) }
      && methods.allSatisfy { method in reasons.contains { $0.suffix.hasPrefix(method) } }
  }
}
