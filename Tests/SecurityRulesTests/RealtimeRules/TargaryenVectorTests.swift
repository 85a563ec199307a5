// Plays a public suite of rule expressions, which was recorded against the hosted service.

import Access
import Foundation
import JSON
import RealtimeModel
import SecurityRules
import Testing

@Suite(
  "Rule expressions recorded against the hosted service", .timeLimit(.minutes(1)),
  .enabled(if: RealtimeVectors.folder != nil, "HEARTH_CONFORMANCE is not set"))
struct TargaryenVectorTests {
  private let vectors = RealtimeVectors()

  /// Whether a rule grants a read; nil for a rule that is rejected. The rule is below the wildcards that it uses.
  private func isGranted(_ rule: String, _ item: JSONObject, _ users: JSONObject) throws -> Bool? {
    var rules: JSONValue = .object([".read": .string(rule)])
    let wildcards = (item["wildchildren"]?.object?.pairs ?? []).sorted { $0.name < $1.name }
    for (name, _) in wildcards.reversed() { rules = .object([name: rules]) }
    let text = JSONValue.object(["rules": rules]).json()
    guard let ruleset = try? RealtimeRuleset(text) else { return nil }
    let path = Path(keys: wildcards.compactMap { $0.value.string.map { ChildKey($0) } })
    var principal = Principal.nobody
    if let claims = users[item["user"]?.string ?? ""]?.object {
      principal = Principal(
        .user(User(id: claims["uid"]?.string ?? "", claims: Claims(claims), isOverride: true)))
    }
    let view = NodeTreeView(before: try vectors.node(item["data"]))
    let operation = RealtimeAccess.Operation.read(path, try query(item["query"]?.object))
    return try RealtimeRulesPolicy(ruleset).decide(principal, operation, view: view).denial == nil
  }

  private func query(_ fields: JSONObject?) throws -> QuerySpec {
    var query = QuerySpec()
    for (name, value) in fields?.pairs ?? [] {
      let leaf = try vectors.node(value).leafValue
      switch name {
      case "orderByChild": query.ordering = .child(Path(value.string ?? ""))
      case "orderByKey": query.ordering = .key
      case "orderByValue": query.ordering = .value
      case "orderByPriority": query.namesPriority = true
      case "startAt": query.start = .init(leaf)
      case "endAt": query.end = .init(leaf)
      case "equalTo": (query.start, query.end) = (.init(leaf), .init(leaf))
      case "limitToFirst": query.limit = .first(Int(value.int ?? 0))
      case "limitToLast": query.limit = .last(Int(value.int ?? 0))
      default: Issue.record("unknown field \(name)")
      }
    }
    return query
  }

  @Test("Each expression has the recorded validity and the recorded value or failure")
  func fixtures() throws {
    let url = URL(fileURLWithPath: RealtimeVectors.folder ?? "")
      .appendingPathComponent("database-rules/targaryen-fixtures.json")
    let file = try JSONValue(json: Array(Data(contentsOf: url)))
    let users = file["users"]?.object ?? JSONObject()
    let tests = file["tests"]?.array ?? []
    #expect(tests.count == 186)
    for item in tests.compactMap(\.object) {
      let rule = item["rule"]?.string ?? ""
      let granted = try isGranted(rule, item, users)
      #expect((granted != nil) == (item["isValid"] == .bool(true)), "\(rule)")
      guard granted != nil, let expected = item["failAtRuntime"] else { continue }
      let negated = try isGranted("!(\(rule))", item, users)
      #expect((granted == false && negated == false) == (expected == .bool(true)), "\(rule) fails")
      if case .bool(let value)? = item["evaluateTo"] { #expect(granted == value, "\(rule)") }
    }
  }
}
