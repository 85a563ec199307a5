// Tests the definition of queries: their order, bounds, scope, validation and canonical form.

import FirestoreModel
import RandomModels
import Testing

@Suite("Queries", .timeLimit(.minutes(10)))
struct QueryDefinitionTests {
  static let database = DatabaseName(project: "p")
  typealias Order = StructuredQuery.Order

  static func name(_ path: ResourcePath) throws -> DocumentName {
    try #require(DocumentName(database: database, path: path))
  }

  static func field(_ text: String, _ op: FieldFilter.Operator, _ value: Value) -> Filter {
    .field(FieldFilter((try? FieldPath(parsing: text)) ?? .documentID, op, value))
  }

  static func order(_ text: String, _ direction: StructuredQuery.Direction = .ascending) -> Order {
    Order((try? FieldPath(parsing: text)) ?? .documentID, direction)
  }

  static func query(_ structured: StructuredQuery) -> Query {
    var structured = structured
    if structured.from.isEmpty { structured.from = [.init("books")] }
    return Query(parent: ParentName(rootOf: database), structured)
  }

  static func rejection(_ structured: StructuredQuery) -> String? {
    failure { () throws(FirestoreError) in _ = try NormalizedQuery(query(structured)) }?.message
  }

  // MARK: Order

  @Test("The order is completed by inequality fields and the name, in the last explicit direction")
  func normalizedOrder() {
    func order(_ query: StructuredQuery) -> String {
      query.normalizedOrder.map { "\($0.field)\($0.direction == .ascending ? "+" : "-")" }.joined(
        separator: " ")
    }
    #expect(order(StructuredQuery()) == "__name__+")
    #expect(order(StructuredQuery(orderBy: [Self.order("a", .descending)])) == "a- __name__-")
    let two = Filter.composite(
      .and, [Self.field("rating", .greaterThanOrEqual, 4), Self.field("pages", .greaterThan, 100)])
    #expect(order(StructuredQuery(filter: two)) == "pages+ rating+ __name__+")
    #expect(
      order(StructuredQuery(filter: two, orderBy: [Self.order("rating", .descending)]))
        == "rating- pages- __name__-")
    let either = Filter.composite(.or, [Self.field("a", .greaterThan, 1), Self.field("b", .equal, 1)])
    #expect(order(StructuredQuery(filter: either)) == "a+ __name__+")
    let unary = Filter.unary(UnaryFilter(FieldPath(field: "z"), .isNotNull))
    #expect(order(StructuredQuery(filter: unary)) == "z+ __name__+")
    #expect(order(StructuredQuery(filter: Self.field("a", .equal, 1))) == "__name__+")
    #expect(
      order(
        StructuredQuery(
          filter: .composite(
            .and,
            [
              Self.field("a.b", .notIn, [1]), Self.field("`a.b`", .notEqual, 1),
              Self.field("a", .lessThan, 1),
            ])))
        == "a+ a.b+ `a.b`+ __name__+")
  }

  @Test("Limit to last reverses the directions and exchanges the cursors")
  func limitToLast() {
    let query = StructuredQuery(
      orderBy: [Self.order("pages")], startAt: Cursor([100], before: true), limit: 2)
    let reversed = query.reversed
    #expect(reversed.orderBy == [Self.order("pages", .descending), Order(.documentID, .descending)])
    #expect(reversed.endAt == Cursor([100], before: false) && reversed.startAt == nil)
    #expect(reversed.reversed.startAt == query.startAt)
  }

  @Test("The text form of an order is parsed, and malformed text is rejected and echoed")
  func orderText() throws {
    #expect(
      try [Order](parsing: "priority desc, `a,b` asc,__name__")
        == [Self.order("priority", .descending), Order(FieldPath(field: "a,b")), Order(.documentID)])
    for bad in ["", "a,", "a up", "a desc desc", "a..b", "`a"] {
      let error = failure { () throws(FirestoreError) in _ = try [Order](parsing: bad) }
      #expect(error == .invalidArgument("Invalid order by clause \"\(bad)\"."))
    }
  }

  // MARK: Results

  @Test(
    "Documents without an ordered field are omitted, null counts as present, and results have the database's order"
  )
  func results() throws {
    let query = try NormalizedQuery(Self.query(StructuredQuery(orderBy: [Self.order("pages")])))
    let documents: [(DocumentName, MapValue)] = [
      (try Self.name("books/b1"), ["pages": 10]), (try Self.name("books/b2"), [:]),
      (try Self.name("books/b3"), ["pages": .null]), (try Self.name("books/b0"), ["pages": 10.0]),
    ]
    let found = documents.filter { query.matches($0.0, $0.1) }
      .sorted { query.compare($0.0, $0.1, $1.0, $1.1) == .ascending }
    #expect(found.map(\.0.id) == ["b3", "b0", "b1"])
  }

  @Test(
    "If one branch of an `or` has an inequality, the results of every branch must have the field of the inequality"
  )
  func implicitOrderExcludes() throws {
    let query = try NormalizedQuery(
      Self.query(
        StructuredQuery(
          filter: .composite(.or, [Self.field("a", .greaterThan, 1), Self.field("b", .equal, 1)]))))
    #expect(!query.matches(try Self.name("books/x"), ["b": 1]))
    #expect(query.matches(try Self.name("books/x"), ["b": 1, "a": 0]))
  }

  @Test("A query's scope is a child collection, a collection group, or all collections")
  func scope() throws {
    func find(_ selector: StructuredQuery.CollectionSelector?, under parent: ResourcePath) throws -> [String]
    {
      let parent = try #require(ParentName(database: Self.database, path: parent))
      let query = try NormalizedQuery(
        Query(parent: parent, StructuredQuery(from: selector.map { [$0] } ?? [])))
      let paths: [ResourcePath] = [
        "books/b1", "books/b1/notes/n1", "books/b2/notes/n2", "notes/n0", "books/b1/notes/n1/books/deep",
      ]
      return try paths.filter { query.isInScope(try Self.name($0)) }.map { $0.id ?? "" }
    }
    #expect(try find(.init("books"), under: .root) == ["b1"])
    #expect(try find(.init("notes"), under: "books/b1") == ["n1"])
    #expect(try find(.init("notes", allDescendants: true), under: .root) == ["n1", "n2", "n0"])
    #expect(try find(.init("notes", allDescendants: true), under: "books/b2") == ["n2"])
    #expect(try find(nil, under: .root) == ["b1", "n0"])
    #expect(try find(.init("", allDescendants: true), under: "books/b1") == ["n1", "deep"])
  }

  @Test(
    "A cursor lies before or after its values, which may be fewer than the orders, of another type or none")
  func cursors() throws {
    func find(_ start: Cursor?, _ end: Cursor?, _ direction: StructuredQuery.Direction = .ascending) throws
      -> [Int64]
    {
      let query = try NormalizedQuery(
        Self.query(
          StructuredQuery(
            orderBy: [Self.order("n", direction), Order(.documentID, direction)], startAt: start, endAt: end))
      )
      return try (1...5).filter {
        query.isWithinBounds(try Self.name(ResourcePath(["books", "b\($0)"])), ["n": .integer($0)])
      }
    }
    #expect(try find(Cursor([3], before: true), nil) == [3, 4, 5])
    #expect(try find(Cursor([3], before: false), nil) == [4, 5])
    #expect(try find(nil, Cursor([3], before: true)) == [1, 2])
    #expect(try find(nil, Cursor([3.0], before: false)) == [1, 2, 3])
    #expect(try find(Cursor([3], before: true), Cursor([2], before: false), .descending) == [2, 3])
    #expect(
      try find(Cursor(["x"], before: true), nil) == [] && find(Cursor([true], before: true), nil).count == 5)
    #expect(try find(Cursor([], before: true), nil).count == 5)
    let reference = Value.reference(try Self.name("books/b3"))
    #expect(try find(Cursor([3, reference], before: false), nil) == [4, 5])
  }

  @Test("A reversed random query has the reverse order and the same bounds")
  func reversal() throws {
    var source = RandomValues(seed: 32)
    var checked = 0
    for _ in 0..<3000 {
      var structured = source.structuredQuery()
      if let value = structured.startAt?.values.first, value.kind != .reference { structured.offset = 0 }
      guard let query = try? NormalizedQuery(Self.query(structured)) else { continue }
      let reversed = try NormalizedQuery(Self.query(structured.reversed))
      checked += 1
      let (a, b) = (source.document(), source.document())
      #expect(
        query.compare(a.name, a.fields, b.name, b.fields)
          == reversed.compare(a.name, a.fields, b.name, b.fields).reversed)
      #expect(query.isWithinBounds(a.name, a.fields) == reversed.isWithinBounds(a.name, a.fields))
    }
    #expect(checked > 300)
  }

  @Test("An empty projection, or a projection to `__name__`, returns only names")
  func projection() throws {
    func project(_ select: FieldMask?) throws -> MapValue {
      try NormalizedQuery(Self.query(StructuredQuery(select: select))).projected(["a": 1, "b": 2])
    }
    #expect(try project(nil) == ["a": 1, "b": 2] && project([]) == [:] && project([.documentID]) == [:])
    #expect(try project([FieldPath(field: "b"), FieldPath(field: "c")]) == ["b": 2])
  }

  // MARK: Validation

  @Test("Invalid queries are rejected with Cloud Firestore's error message")
  func messages() throws {
    let key = Value.reference(try Self.name("books/b1"))
    #expect(
      Self.rejection(StructuredQuery(from: [.init("a"), .init("b")]))
        == "StructuredQuery.from cannot have more than one collection selector.")
    for filter in [Filter.composite(.or, []), .composite(.and, [.composite(.or, [])])] {
      #expect(Self.rejection(StructuredQuery(filter: filter))?.contains("at least one filter") == true)
    }
    #expect(Self.rejection(StructuredQuery(offset: -1)) == "offset is negative")
    #expect(Self.rejection(StructuredQuery(limit: -1)) == "limit is negative")
    #expect(Self.rejection(StructuredQuery(limit: 0)) == nil)
    #expect(
      Self.rejection(StructuredQuery(filter: Self.field("a", .isIn, 1))) == "'IN' requires an ArrayValue.")
    #expect(
      Self.rejection(StructuredQuery(filter: Self.field("a", .arrayContainsAny, [])))
        == "'ARRAY_CONTAINS_ANY' requires an non-empty ArrayValue.")
    let many = Value.array((0..<31).map { .integer($0) })
    #expect(
      Self.rejection(StructuredQuery(filter: Self.field("a", .isIn, many)))
        == "'IN' supports up to 30 comparison values.")
    #expect(
      Self.rejection(StructuredQuery(filter: Self.field("a", .notIn, .array((0..<11).map { .integer($0) }))))
        == "'NOT_IN' supports up to 10 comparison values.")
    #expect(
      Self.rejection(
        StructuredQuery(
          filter: .composite(.and, [Self.field("a", .notEqual, 1), Self.field("b", .notEqual, 1)])))
        == "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query.")
    #expect(
      Self.rejection(
        StructuredQuery(
          filter: .composite(.and, [Self.field("a", .notIn, [1]), Self.field("b", .isIn, [1])])))
        == "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'.")
    #expect(
      Self.rejection(
        StructuredQuery(
          filter: .composite(.and, [Self.field("a", .arrayContains, 1), Self.field("b", .arrayContains, 1)])))
        == "A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
    #expect(
      Self.rejection(
        StructuredQuery(
          filter: .composite(.or, [Self.field("a", .arrayContains, 1), Self.field("b", .arrayContains, 1)])))
        == nil)
    #expect(
      Self.rejection(StructuredQuery(filter: Self.field("__name__", .equal, "b1")))
        == "__key__ filter value must be a Key")
    for test in UnaryFilter.Operator.allCases {
      #expect(
        Self.rejection(StructuredQuery(filter: .unary(UnaryFilter(.documentID, test))))
          == "__key__ filter value must be a Key")
    }
    #expect(Self.rejection(StructuredQuery(filter: Self.field("__name__", .isIn, [key]))) == nil)
    let named = Self.field("__name__", .equal, key)
    for (others, accepted) in [
      ([Self.field("a", .notEqual, 1)], false), ([Self.field("a", .equal, 1)], true),
      ([Self.field("a", .lessThan, 1), Self.field("__name__", .greaterThanOrEqual, key)], true),
    ] {
      #expect(
        Self.rejection(StructuredQuery(filter: .composite(.and, [named] + others)))
          == (accepted
            ? nil
            : "Equality on key is not allowed if there are other inequality fields and key does not appear in "
              + "inequalities."))
    }
    #expect(
      Self.rejection(StructuredQuery(orderBy: [Order(.documentID), Self.order("a")]))
        == "order by clause cannot contain more fields after the key")
    #expect(
      Self.rejection(StructuredQuery(filter: Self.field("n", .lessThan, 3), orderBy: [Order(.documentID)]))
        == "order by clause cannot contain more fields after the key")
    #expect(
      Self.rejection(StructuredQuery(orderBy: [Self.order("a")], startAt: Cursor([1, key, 2], before: true)))
        == "Cursor has too many values.")
    #expect(
      Self.rejection(StructuredQuery(orderBy: [Self.order("a")], startAt: Cursor([1, key], before: true)))
        == nil)
    #expect(Self.rejection(StructuredQuery(startAt: Cursor(["b1"], before: true))) != nil)
    let reserved = "Invalid reserved name in field path __x__"
    #expect(Self.rejection(StructuredQuery(orderBy: [Self.order("__x__")])) == reserved)
    #expect(Self.rejection(StructuredQuery(filter: Self.field("__x__", .equal, 3))) == reserved)
    #expect(
      Self.rejection(StructuredQuery(filter: Self.field("v", .equal, .vector([]))))
        == "Cannot have a zero length vector.")
  }

  @Test("Limits on filters, orders, inequality fields, neighbours and collection ids are enforced")
  func limits() throws {
    func all(_ count: Int, _ op: FieldFilter.Operator) -> Filter {
      .composite(.and, (0..<count).map { Self.field("f\($0)", op, 1) })
    }
    #expect(Self.rejection(StructuredQuery(filter: all(100, .equal))) == nil)
    #expect(Self.rejection(StructuredQuery(filter: all(101, .equal))) != nil)
    func deep(_ filter: Filter) -> Filter {
      (0..<90).reduce(filter) { filter, level in .composite(level.isMultiple(of: 2) ? .or : .and, [filter]) }
    }
    for empty in [
      Filter.composite(.and, []), .composite(.or, [.composite(.and, [])]), deep(.composite(.and, [])),
    ] {
      func parts(_ count: Int) -> StructuredQuery {
        StructuredQuery(
          filter: .composite(.and, [Filter](repeating: empty, count: count) + [all(50, .equal)]))
      }
      #expect(Self.rejection(parts(50)) == nil)
      #expect(Self.rejection(parts(51)) == "The query has more than 100 filters and orders.")
    }
    let single = Self.field("f", .equal, 1)
    #expect(try NormalizedQuery(Self.query(StructuredQuery(filter: deep(single)))).filter == single)
    #expect(Self.rejection(StructuredQuery(filter: all(10, .greaterThan))) == nil)
    #expect(Self.rejection(StructuredQuery(filter: all(11, .greaterThan))) != nil)
    #expect(Self.rejection(StructuredQuery(orderBy: [Self.order("a"), Self.order("a", .descending)])) != nil)
    #expect(Self.rejection(StructuredQuery(from: [.init("__x__")])) != nil)
    func nearest(_ limit: Int, _ dimensions: Int) -> StructuredQuery {
      StructuredQuery(
        findNearest: FindNearest(
          field: FieldPath(field: "v"), vector: [Double](repeating: 0, count: dimensions), measure: .cosine,
          limit: limit))
    }
    #expect(Self.rejection(nearest(1000, 2048)) == nil)
    for bad in [nearest(0, 2), nearest(1001, 2), nearest(1, 2049), nearest(1, 0)] {
      #expect(Self.rejection(bad) != nil)
    }
    let elsewhere = try #require(DocumentName(database: DatabaseName(project: "q"), path: "books/b1"))
    #expect(
      Self.rejection(StructuredQuery(filter: Self.field("__name__", .equal, .reference(elsewhere)))) != nil)
  }

  // MARK: Text

  @Test("Random queries have equal canonical forms exactly if the queries are equal")
  func canonicalForm() {
    var source = RandomValues(seed: 33)
    var seen: [String: NormalizedQuery] = [:]
    for _ in 0..<4000 {
      guard let query = try? NormalizedQuery(Self.query(source.structuredQuery())) else { continue }
      if let other = seen.updateValue(query, forKey: query.canonicalForm) { #expect(other == query) }
    }
    #expect(seen.count > 500)
  }

  @Test("Strings inside a query cannot imitate the query's structure")
  func canonicalQuoting() throws {
    func text(_ filter: Filter) throws -> String {
      try NormalizedQuery(Self.query(StructuredQuery(filter: filter))).canonicalForm
    }
    let a = try text(.composite(.and, [Self.field("a", .equal, "x"), Self.field("b", .equal, "y")]))
    let b = try text(.composite(.and, [Self.field("a", .equal, "x\",b EQUAL \"y")]))
    #expect(a != b)
    #expect(Value.string("\"").canonicalText == #""\"""#)
    #expect(Value.double(1).canonicalText != Value.integer(1).canonicalText)
  }
}
