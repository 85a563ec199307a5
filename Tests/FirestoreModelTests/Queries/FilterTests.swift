// Tests which documents match which filters.

import FirestoreModel
import RandomModels
import Testing

@Suite("Filters", .timeLimit(.minutes(10)))
struct FilterTests {
  static let name = DocumentName(database: DatabaseName(project: "p"), path: "books/b1")

  static func matches(_ op: FieldFilter.Operator, _ operand: Value, _ stored: Value?) -> Bool {
    guard let name else { return false }
    var fields = MapValue()
    fields["f"] = stored
    return Filter.field(FieldFilter(FieldPath(field: "f"), op, operand)).matches(name, fields)
  }

  static func matches(_ op: UnaryFilter.Operator, _ stored: Value?) -> Bool {
    guard let name else { return false }
    var fields = MapValue()
    fields["f"] = stored
    return Filter.unary(UnaryFilter(FieldPath(field: "f"), op)).matches(name, fields)
  }

  static let nan = Value.double(.nan)

  @Test("Ranges match only values of the operand's type and never NaN")
  func ranges() {
    #expect(
      Self.matches(.lessThan, 3, 2) && Self.matches(.lessThan, 3, 2.5) && Self.matches(.lessThan, 3.5, 3))
    #expect(!Self.matches(.lessThan, 3, 3) && Self.matches(.lessThanOrEqual, 3, 3.0))
    #expect(Self.matches(.greaterThan, "a", "b") && !Self.matches(.greaterThan, "a", .bytes([200])))
    #expect(!Self.matches(.lessThan, 3, Self.nan) && !Self.matches(.greaterThanOrEqual, Self.nan, 1))
    #expect(!Self.matches(.lessThanOrEqual, Self.nan, Self.nan))
    #expect(Self.matches(.greaterThan, .double(-.infinity), .integer(.min)))
    #expect(!Self.matches(.greaterThanOrEqual, .null, .null) && !Self.matches(.lessThan, 3, nil))
    #expect(!Self.matches(.greaterThan, 1, true) && Self.matches(.greaterThan, false, true))
  }

  @Test("Equality matches 1 and 1.0, equal arrays and maps, but not null or NaN")
  func equality() {
    #expect(Self.matches(.equal, 1, 1.0) && Self.matches(.equal, .double(-0.0), 0))
    #expect(Self.matches(.equal, [1, ["a": 2]], [1.0, ["a": 2.0]]) && !Self.matches(.equal, [1], [1, 2]))
    #expect(!Self.matches(.equal, .null, .null) && !Self.matches(.equal, Self.nan, Self.nan))
    #expect(Self.matches(.isIn, [1, "a"], 1.0) && !Self.matches(.isIn, [.null, Self.nan], .null))
    #expect(!Self.matches(.isIn, [Self.nan], Self.nan) && !Self.matches(.isIn, [1], nil))
    #expect(Self.matches(.equal, [.null], [.null]))
  }

  @Test("Negations require a present, non-null field")
  func negations() {
    #expect(Self.matches(.notEqual, "x", 1) && Self.matches(.notEqual, "x", Self.nan))
    #expect(!Self.matches(.notEqual, "x", nil) && !Self.matches(.notEqual, "x", .null))
    #expect(!Self.matches(.notEqual, .null, 1) && !Self.matches(.notEqual, 1, 1.0))
    #expect(Self.matches(.notIn, ["y"], "x") && !Self.matches(.notIn, ["x", .null], "y"))
    #expect(!Self.matches(.notIn, [Self.nan], Self.nan) && Self.matches(.notIn, [Self.nan], "x"))
    #expect(!Self.matches(.notIn, ["y"], nil) && !Self.matches(.notIn, ["y"], .null))
  }

  @Test("Array membership compares elements by value and never matches null, NaN or arrays")
  func arrays() {
    #expect(Self.matches(.arrayContains, 1, ["a", 1.0]) && !Self.matches(.arrayContains, 1, 1))
    #expect(
      !Self.matches(.arrayContains, .null, [.null]) && !Self.matches(.arrayContains, Self.nan, [Self.nan]))
    #expect(
      !Self.matches(.arrayContains, [1], [["a": 1]]) && Self.matches(.arrayContains, ["a": 1], [["a": 1]]))
    #expect(
      Self.matches(.arrayContainsAny, [5, "a"], ["a"]) && !Self.matches(.arrayContainsAny, [.null], [.null]))
  }

  @Test("Unary filters match null, NaN and their opposites")
  func unary() {
    #expect(Self.matches(.isNull, .null) && !Self.matches(.isNull, 1) && !Self.matches(.isNull, nil))
    #expect(Self.matches(.isNaN, Self.nan) && !Self.matches(.isNaN, 1))
    #expect(
      Self.matches(.isNotNull, Self.nan) && !Self.matches(.isNotNull, nil) && !Self.matches(.isNotNull, .null)
    )
    #expect(
      Self.matches(.isNotNaN, "x") && !Self.matches(.isNotNaN, Self.nan) && !Self.matches(.isNotNaN, .null))
    #expect(!Self.matches(.isNotNaN, nil))
  }

  @Test("The documented example of matches with null and NaN holds")
  func workedExample() {
    let documents: [(String, Value?)] = [("a", .null), ("b", nil), ("c", "x"), ("d", Self.nan)]
    func find(_ test: (Value?) -> Bool) -> String { documents.filter { test($0.1) }.map(\.0).joined() }
    #expect(find { Self.matches(.equal, .null, $0) } == "")
    #expect(find { Self.matches(.isNull, $0) } == "a")
    #expect(find { Self.matches(.notEqual, "x", $0) } == "d")
    #expect(find { Self.matches(.isNotNull, $0) } == "cd")
    #expect(find { Self.matches(.notIn, ["x", .null], $0) } == "")
    #expect(find { Self.matches(.notIn, [Self.nan], $0) } == "c")
    #expect(find { Self.matches(.isIn, [Self.nan], $0) } == "")
    #expect(find { Self.matches(.isNotNaN, $0) } == "c")
  }

  @Test("A filter on the name compares references, and filters find nested and quoted fields")
  func fields() throws {
    let name = try #require(Self.name)
    let other = try #require(DocumentName(database: name.database, path: "books/b2"))
    func matches(_ filter: Filter) -> Bool { filter.matches(name, ["a": ["b": 1], "a.b": 2]) }
    #expect(matches(.field(FieldFilter(.documentID, .equal, .reference(name)))))
    #expect(matches(.field(FieldFilter(.documentID, .lessThan, .reference(other)))))
    #expect(!matches(.field(FieldFilter(.documentID, .isIn, [.reference(other)]))))
    #expect(matches(.field(FieldFilter(try FieldPath(parsing: "a.b"), .equal, 1))))
    #expect(matches(.field(FieldFilter(FieldPath(field: "a.b"), .equal, 2))))
  }

  @Test("An empty composite matches every document")
  func emptyComposite() throws {
    let name = try #require(Self.name)
    #expect(Filter.composite(.and, []).matches(name, [:]) && Filter.composite(.or, []).matches(name, [:]))
    #expect(Filter.composite(.or, []).disjunctions() == [[]])
  }

  @Test("The disjunctive normal form of a filter matches the same documents as the filter")
  func disjunctions() throws {
    var source = RandomValues(seed: 31)
    var built = 0
    for _ in 0..<4000 {
      let filter = source.filter()
      guard let alternatives = filter.disjunctions(limit: 100) else { continue }
      #expect(alternatives.count == filter.disjunctionCount)
      built += 1
      for _ in 0..<5 {
        let (name, fields) = source.document()
        let any = alternatives.contains { terms in terms.allSatisfy { $0.matches(name, fields) } }
        #expect(any == filter.matches(name, fields), "\(filter)")
      }
    }
    #expect(built > 3000)
  }

  @Test(
    "Adding composites of one part and empty composites, at any depth, does not change the matching documents"
  )
  func simplification() throws {
    var source = RandomValues(seed: 32)
    func wrapped(_ filter: Filter) -> Filter {
      var filter = filter
      if case .composite(let op, let parts) = filter { filter = .composite(op, parts.map(wrapped)) }
      while source.below(2) == 0 { filter = .composite(source.pick([.and, .or]), [filter]) }
      return filter
    }
    var compared = 0
    for _ in 0..<4000 {
      let filter = wrapped(source.filter())
      let query = Query(
        parent: ParentName(rootOf: DatabaseName(project: "p")), StructuredQuery(filter: filter))
      guard let normalized = try? NormalizedQuery(query), let simplified = normalized.filter else { continue }
      compared += 1
      for _ in 0..<5 {
        let (name, fields) = source.document()
        #expect(simplified.matches(name, fields) == filter.matches(name, fields), "\(filter)")
      }
    }
    #expect(compared > 1000)
  }

  @Test(
    "30 disjunctions are accepted and 31 are rejected; a huge number is rejected without building them"
  )
  func disjunctionLimit() {
    func isIn(_ count: Int64) -> Filter {
      .field(FieldFilter(FieldPath(field: "f"), .isIn, .array((0..<count).map { .integer($0) })))
    }
    #expect(isIn(30).disjunctions()?.count == 30 && isIn(31).disjunctions() == nil)
    #expect(Filter.composite(.and, [isIn(5), isIn(6)]).disjunctions()?.count == 30)
    #expect(Filter.composite(.or, [isIn(15), isIn(16)]).disjunctions() == nil)
    let huge = Filter.composite(.and, [Filter](repeating: isIn(30), count: 50))
    #expect(huge.disjunctionCount == .max && huge.disjunctions() == nil)
  }
}
