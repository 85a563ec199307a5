// Tests the syntax check of rule expressions with a public suite: all valid expressions are accepted, and
// only invalid ones are rejected.

import Foundation
import JSON
import RealtimeModel
import Testing

@Suite("Rule expressions of the shared vectors", .timeLimit(.minutes(1)))
struct RuleVectorTests {
  private static let folder = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"]

  private struct Fixtures: Decodable {
    struct Fixture: Decodable {
      var rule: String
      var isValid: Bool
    }

    var tests: [Fixture]
  }

  private func isTaken(_ rule: String) throws -> Bool {
    let text = JSONValue.object(["rules": .object([".read": .string(rule)])]).json()
    return (try? RulesFile(text)) != nil
  }

  @Test(
    "Valid expressions are accepted, and syntactically invalid ones are rejected",
    .enabled(if: folder != nil, "HEARTH_CONFORMANCE is not set"))
  func form() throws {
    let folder = try #require(Self.folder)
    let file = URL(fileURLWithPath: folder).appendingPathComponent("database-rules/targaryen-fixtures.json")
    let fixtures = try JSONDecoder().decode(Fixtures.self, from: Data(contentsOf: file)).tests
    #expect(fixtures.count > 100)
    var refused: [String] = []
    for fixture in fixtures {
      if try isTaken(fixture.rule) { continue }
      #expect(!fixture.isValid, "\(fixture.rule)")
      refused.append(fixture.rule)
    }
    // The suite's other invalid expressions have wrong names, types or arguments, which the syntax check does
    // not cover.
    #expect(
      refused == [
        "var foo = 8", "root = 5", "auth.uid === '5'; auth.id === 5", "(2**2) == 4",
        "root.val().matches(/bar/ig)", "root.val().matches(/(^foo$|bar)/)", "root.val().matches(/^(foo|)$/)",
      ])
  }
}
