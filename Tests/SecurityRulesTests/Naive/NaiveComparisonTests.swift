// Compares the compiled evaluator of Firestore rules with a naive evaluator, on random rules, documents and requests.
//
// Each seed makes a program: a random rules file, with random documents and requests. The environment variable
// HEARTH_RULES_PROGRAMS sets the number of programs, and HEARTH_SEED the first seed. `make rules` runs many programs.

import FirestoreModel
import Foundation
import RandomModels
import Testing

@testable import SecurityRules

@Suite("Random rules against a naive evaluator", .timeLimit(.minutes(30))) struct NaiveComparisonTests {
  static let environment = ProcessInfo.processInfo.environment
  static let count = environment["HEARTH_RULES_PROGRAMS"].flatMap(UInt64.init) ?? 60
  static let seed = environment["HEARTH_SEED"].flatMap(UInt64.init) ?? 1

  /// The documents before and after a request.
  private struct States: RuleDocumentSource {
    var before: [ResourcePath: MapValue]
    var after: [ResourcePath: MapValue]

    func fields(of path: ResourcePath, afterWrites: Bool) -> MapValue? {
      (afterWrites ? after : before)[path]
    }
  }

  @Test("every verdict equals the verdict of the naive evaluator")
  func verdicts() throws {
    var decisions = 0
    var grants = 0
    for seed in Self.seed..<Self.seed + Self.count {
      var program = RandomRules(seed: seed)
      let source = program.file()
      let rules: FirestoreRuleset
      do { rules = try FirestoreRuleset(compiling: source) } catch {
        Issue.record("seed \(seed): \(error)\n\(source)")
        continue
      }
      let tree = NaiveEvaluator.parse(source)
      let stored = Self.documents(&program)
      for _ in 0..<60 {
        let path = ResourcePath([program.pick(RandomRules.collections), program.pick(["a", "b", "none"])])
        let caller = program.caller()
        let method = program.pick(["get", "create", "update", "delete"])
        var states = States(before: stored, after: stored)
        switch method {
        case "create", "update": states.after[path] = program.fields()
        case "delete": states.after[path] = nil
        default: break
        }
        let context = FirestoreRuleset.Context(
          database: "(default)",
          caller: caller.map { RuleCaller(uid: $0.uid, claims: $0.claims) } ?? .nobody,
          time: Timestamp(seconds: 1_764_000_000), documents: states)
        let decision =
          method == "get"
          ? rules.decideGet([(path, stored[path])], context)
          : rules.decideChanges(
            [
              RuleChange(
                path: path, method: try #require(RuleMethod(rawValue: method)), before: stored[path],
                after: states.after[path])
            ], context)
        let naive = NaiveEvaluator(
          tree, before: states.before, after: states.after,
          caller: caller.map { ($0.uid, NaiveValue.fields($0.claims)) })
        let expected = try naive.allows(method, path)
        decisions += 1
        if expected { grants += 1 }
        #expect(
          decision.isAllowed == expected,
          "seed \(seed): \(method) \(path) by \(caller?.uid ?? "nobody"): \(Self.block(of: path, in: source))"
        )
      }
    }
    print("rules: \(Self.count) programs, \(decisions) decisions, \(grants) granted")
    #expect(grants > 0 && grants < decisions)
  }

  /// The functions of a rules file and the blocks of a path's collection.
  private static func block(of path: ResourcePath, in source: String) -> String {
    let lines = source.split(separator: "\n")
    let name = path.segments[0]
    var isInside = false
    let blocks = lines.filter { line in
      if line.hasPrefix("match") { isInside = line.contains("/\(name)/") }
      return isInside
    }
    return (lines.filter { $0.hasPrefix("function") } + blocks).joined(separator: "\n")
  }

  /// Random stored documents of all collections, and those that rules look up.
  static func documents(_ program: inout RandomRules) -> [ResourcePath: MapValue] {
    var stored: [ResourcePath: MapValue] = [:]
    for id in RandomRules.documents { stored[ResourcePath(["look", id])] = program.fields() }
    for collection in RandomRules.collections {
      for id in ["a", "b"] { stored[ResourcePath([collection, id])] = program.fields() }
    }
    return stored
  }
}
