// Plays the shared vectors of Realtime Database rules against the policy. A vector is a case with its expected result in
// a JSON file of the folder that the environment variable HEARTH_CONFORMANCE names.

import Foundation
import JSON
import RealtimeModel
import SecurityRules
import Testing

@Suite(
  "Shared vectors of Realtime Database rules", .timeLimit(.minutes(2)),
  .enabled(if: RealtimeVectors.folder != nil, "HEARTH_CONFORMANCE is not set"))
struct RealtimeVectorTests {
  private static let categories = [
    "operators", "static", "strings", "regex", "snapshots", "auth", "tokens", "wildcards", "cascades",
    "multipath",
    "priorities", "server-values", "query", "indexes", "conditional", "data-forms", "files", "defaults",
    "websocket",
  ]

  @Test("Each case has one of its stated results", arguments: categories)
  func vectors(category: String) throws {
    let vectors = RealtimeVectors()
    for item in try RealtimeVectors.cases(category) {
      let id = item["id"]?.string ?? ""
      var expected = [
        item["expression"] == nil ? item["verdict"]?.string ?? "" : item["result"]?.string ?? ""
      ]
      expected += (item["also"]?.array ?? []).compactMap(\.string)
      let found: String
      if item["expression"] != nil {
        found = try vectors.result(of: item)
      } else {
        guard expected != ["invalid"], let verdict = try vectors.verdict(of: item) else { continue }
        found = verdict.rawValue
      }
      #expect(expected.contains(found), "\(id): \(item["expression"]?.string ?? item["rules"]?.string ?? "")")
    }
  }

  @Test("A rejected file is reported at its position")
  func positions() throws {
    for item in try RealtimeVectors.cases("files") {
      guard let position = item["position"]?.array?.compactMap(\.int), let rules = item["rules"]?.string
      else {
        continue
      }
      let error = #expect(throws: RealtimeModel.RulesError.self) { try RealtimeRuleset(Array(rules.utf8)) }
      let problem = error?.problems.first
      #expect([problem?.line, problem?.column].map { Int64($0 ?? 0) } == position, "\(rules)")
    }
  }
}
