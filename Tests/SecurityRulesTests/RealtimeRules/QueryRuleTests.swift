// Tests the order of `query` in rules, for requests with and without an explicit order.

import Access
import JSON
import RealtimeModel
import SecurityRules
import Testing

@Suite("The order of a query in Realtime Database rules", .timeLimit(.minutes(1)))
struct QueryRuleTests {
  private typealias Field = (name: String, value: LeafValue?)

  private func isGranted(_ rule: String, _ fields: [Field]) throws -> Bool {
    let text = JSONValue.object(["rules": .object([".read": .string(rule)])]).json()
    let operation = RealtimeAccess.Operation.read("/", try QuerySpec(wireFields: fields))
    let view = NodeTreeView(before: Node.empty.setting("a", to: .leaf(.int(1))))
    return try RealtimeRulesPolicy(RealtimeRuleset(text)).decide(.nobody, operation, view: view).denial == nil
  }

  @Test("A limit without an order satisfies a rule that requires the order by key and bounds the limit")
  func limitAlone() throws {
    let rule = "query.orderByKey && query.limitToFirst <= 1000"
    #expect(try isGranted(rule, [("l", .int(1_000)), ("vf", .string("l"))]))
    #expect(try !isGranted(rule, [("l", .int(1_001)), ("vf", .string("l"))]))
    #expect(try !isGranted(rule, [("l", .int(1_000)), ("vf", .string("r"))]))
    #expect(try !isGranted(rule, []))
    #expect(try !isGranted(rule, [("i", .string(".value")), ("l", .int(1)), ("vf", .string("l"))]))
  }

  @Test("An explicit order by priority satisfies query.orderByPriority, with and without a limit")
  func namedPriority() throws {
    let priority: Field = ("i", .string(".priority"))
    for fields in [[priority], [priority, ("l", .int(1)), ("vf", .string("l"))]] as [[Field]] {
      #expect(try isGranted("query.orderByPriority && !query.orderByKey", fields))
    }
    #expect(try isGranted("query.orderByKey && !query.orderByPriority", []))
  }

  @Test("Bounds without an order are bounds of priorities, not of keys")
  func boundsAlone() throws {
    for fields in [[("sp", .string("a"))], [("ep", .string("a"))]] as [[Field]] {
      #expect(try isGranted("query.orderByPriority && !query.orderByKey", fields))
    }
  }
}
