// Tests the wire form of queries: short field names such as `sp` (start value) and `sin` (start is
// inclusive).

import RandomModels
import RealtimeModel
import Testing

@Suite("Query fields on the wire", .timeLimit(.minutes(10)))
struct QueryWireTests {
  typealias Field = (name: String, value: LeafValue?)

  @Test("Queries are unchanged after writing and reading their fields", arguments: 0..<200)
  func roundTrip(seed: Int) throws {
    var random = RandomNodes(seed: UInt64(seed))
    let query = random.query()
    let read = try QuerySpec(wireFields: query.wireFields)
    #expect(read == query)
    let names = query.wireFields.map(\.name)
    #expect(names == names.sorted())
  }

  @Test("Bounds are inclusive by default, and null is a valid bound")
  func bounds() throws {
    let query = try QuerySpec(wireFields: [("sp", nil), ("ep", .int(3)), ("ein", .bool(false))] as [Field])
    #expect(query.start == .init(nil))
    #expect(query.end == .init(.int(3), isInclusive: false))
  }

  @Test("A limit without a side counts from the start if there is a start bound, else from the end")
  func limitSide() throws {
    #expect(try QuerySpec(wireFields: [("l", .int(3))] as [Field]).limit == .last(3))
    #expect(try QuerySpec(wireFields: [("l", .int(3)), ("sp", .int(1))] as [Field]).limit == .first(3))
    #expect(try QuerySpec(wireFields: [("l", .int(3)), ("vf", .string("l"))] as [Field]).limit == .first(3))
  }

  @Test("The key [MAX_NAME] in the fields of a query means the maximum key")
  func sentinels() throws {
    let query = try QuerySpec(
      wireFields: [("sp", .int(1)), ("sn", .string("[MAX_NAME]")), ("sin", .bool(false))] as [Field])
    #expect(query.start?.key == .maximum)
  }

  @Test("An exclusive bound without a key still includes the children with its value")
  func exclusiveWithoutKey() throws {
    let list = Node.object([("a", .leaf(.int(1))), ("b", .leaf(.int(2))), ("c", .leaf(.int(3)))])
    func window(_ fields: [Field]) throws -> [ChildKey] {
      list.window(try QuerySpec(wireFields: [("i", .string(".value"))] + fields)).childKeys
    }
    #expect(try window([("sp", .int(2)), ("sin", .bool(false))]) == ["b", "c"])
    #expect(try window([("ep", .int(2)), ("ein", .bool(false))]) == ["a", "b"])
    // Clients add a sentinel key to the bound to exclude all children with the value.
    let after = QuerySpec(ordering: .value, start: .after(.int(2)))
    #expect(try window(after.wireFields) == ["c"])
    #expect(after.start?.key?.text == "[MAX_NAME]")
    let before = QuerySpec(ordering: .value, end: .before(.int(2)))
    #expect(try window(before.wireFields) == ["a"])
    #expect(before.end?.key?.text == "[MIN_NAME]")
  }

  @Test(
    "Fields of a wrong type and invalid limits are rejected",
    arguments: [
      [("l", .int(0))], [("l", .string("x"))], [("l", .int(1 << 31))],
      [("l", .int(1)), ("vf", .string("x"))], [("i", .int(1))],
      [("i", .string("a//.x"))], [("sp", .int(1)), ("sin", .int(1))],
      [("i", .string(".key")), ("sp", .int(5))],
    ] as [[Field]])
  func rejected(fields: [Field]) {
    #expect(throws: RealtimeError.self) { try QuerySpec(wireFields: fields) }
  }

  @Test("The default query has no fields")
  func defaultQuery() {
    #expect(QuerySpec.default.wireFields.isEmpty)
    #expect(QuerySpec.default.isDefault)
    #expect(!QuerySpec(ordering: .key).isDefault)
    #expect(QuerySpec(ordering: .key).showsAll)
  }
}
