// Tests that a comparison with an expensive second operand takes the work of reading the operand from the budget of the
// evaluation, or ends before it has read the operand.

import FirestoreModel
import Testing

@testable import SecurityRules

@Suite(.timeLimit(.minutes(1))) struct RuleComparisonWorkTests {
  private let long = Value.string(String(repeating: "k", count: 400_000))

  private func allows(_ condition: String, _ body: String, _ fields: MapValue) throws -> Bool {
    try ruleset(allowing: condition, functions: "function f() { \(body) }")
      .decideGet([("c/x", fields)], context()).isAllowed
  }

  private func repeated(_ use: String, _ count: Int) -> String {
    Array(repeating: "(\(use))", count: count).joined(separator: " || ")
  }

  @Test("a search for a map in a list counts the reading of the map against the budget once for each item")
  func membership() throws {
    let fields: MapValue = [
      "big": long, "items": .array((0..<20_000).map { .map(["a": .integer(Int64($0))]) }),
    ]
    let search = "let m = {resource.data.big: 1}; return m in resource.data.items || true;"
    #expect(try !allows("f()", search, fields))
    #expect(try allows("{'a': 19999} in resource.data.items", "return true;", fields))
    // A comparison with an item stops at the item's length.
    #expect(try allows("!(resource.data.big in resource.data.items)", "return true;", fields))
  }

  @Test("an equality test counts the reading of both operands against the budget")
  func equality() throws {
    let fields: MapValue = ["big": long, "m": .map(["a": .integer(1)])]
    let body = "let m = {resource.data.big: 1}; return"
    #expect(try !allows("f()", "\(body) \(repeated("resource.data.m == m", 60)) || true;", fields))
    #expect(try allows("f()", "\(body) \(repeated("resource.data.m == m", 10)) || true;", fields))
  }

  @Test("a difference of maps spends work in proportion to the bytes of its keys")
  func differences() throws {
    let fields: MapValue = ["big": long]
    let body = "let m = {resource.data.big: 1}; let d = m.diff({'a': 1}); return"
    #expect(try !allows("f()", "\(body) \(repeated("d.addedKeys().size() == 2", 20)) || true;", fields))
    #expect(try allows("f()", "\(body) \(repeated("d.addedKeys().size() == 2", 5)) || true;", fields))
  }

  @Test(
    "each occurrence of a value that does not equal itself is a separate member of a set, with its own hash")
  func membersWithoutEquals() throws {
    let count = 2_000
    let path = RuleValue.path(RulePath(segments: [.placeholder("a", isRest: false)]))
    let diff = RuleValue.mapDiff(try RuleMapDiff(.built([]), .built([])))
    for value in [path, diff, .list(.built([path]))] {
      let set = try RuleSet(Array(repeating: value, count: count))
      #expect(set.members.count == count)
      #expect(Set(set.members.map(\.hashValue)).count == count)
      #expect(set.members.union(set.members).count == count)
      #expect(!set.contains(value))
    }
  }

  @Test("text that is not valid Unicode finds neither a field nor a document")
  func invalidKeys() throws {
    let fields: MapValue = ["\u{FFFD}": .integer(1)]
    let invalid = RuleText(units: [0xD800])
    #expect(RuleMap.stored(fields)[invalid] == nil)
    #expect(RuleMap.stored(fields)[RuleText("\u{FFFD}")] != nil)
    #expect(try allows("!('\\uD800' in resource.data)", "return true;", fields))
    #expect(try allows("'\\uFFFD' in resource.data", "return true;", fields))
    let collection = ["databases", "d", "documents", "c"].map { RulePath.Segment.text(RuleText($0)) }
    #expect(RulePath(segments: collection + [.text(invalid)]).document(in: "d") == nil)
  }
}
