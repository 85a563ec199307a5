// Tests the rules of writes: validation, preconditions, and the effect of updates and transforms on a document.

import FirestoreModel
import Testing

@Suite("Writes", .timeLimit(.minutes(10)))
struct WriteRuleTests {
  static let database = DatabaseName(project: "p")
  static let time = Timestamp(seconds: 100, nanoseconds: 123_456_000)

  static func name(_ path: ResourcePath = "books/b1") throws -> DocumentName {
    try #require(DocumentName(database: database, path: path))
  }

  static func apply(_ operation: FieldTransform.Operation, to value: Value?) -> Value {
    FieldTransform(FieldPath(field: "f"), operation).apply(to: value, requestTime: time).value
  }

  static func rejection(_ write: Write) -> String? {
    failure { () throws(FirestoreError) in try write.validate(in: database) }?.message
  }

  @Test(
    "An update without a mask replaces the document, a mask limits it to fields, and an empty mask changes no field"
  )
  func updates() throws {
    let name = try Self.name()
    let replace = Write(.update(name, fields: ["a": 1]))
    #expect(replace.apply(to: ["b": 2], requestTime: Self.time).fields == ["a": 1])
    #expect(replace.apply(to: nil, requestTime: Self.time).fields == ["a": 1])
    let merge = Write(
      .update(name, fields: ["a": 1, "c": 3]), mask: [FieldPath(field: "a"), FieldPath(field: "b")])
    #expect(merge.apply(to: ["b": 2, "d": 4], requestTime: Self.time).fields == ["a": 1, "d": 4])
    let touch = Write(.update(name, fields: ["a": 1]), mask: [])
    #expect(touch.apply(to: nil, requestTime: Self.time).fields == [:])
    #expect(touch.apply(to: ["b": 2], requestTime: Self.time).fields == ["b": 2])
  }

  @Test("A precondition's update time has whole microseconds and does not lie before 1970")
  func preconditionTimes() throws {
    func rejection(_ seconds: Int64, _ nanoseconds: Int32) throws -> String? {
      Self.rejection(
        Write(
          .delete(try Self.name()),
          precondition: .updateTime(Timestamp(seconds: seconds, nanoseconds: nanoseconds))))
    }
    #expect(try rejection(1, 1000) == nil)
    #expect(try rejection(1, 1) == "The precondition's update_time must be in whole microseconds.")
    #expect(try rejection(-1, 0) == "The precondition's update_time must not lie before 1970.")
    for (seconds, nanoseconds) in [(253_402_300_800, 0), (1, 1_000_000_000), (1, -1_000)] as [(Int64, Int32)]
    {
      #expect(
        try rejection(seconds, nanoseconds)
          == "The precondition's update_time must lie in the years 1970 to 9999, with 0 to 999,999,999 nanoseconds."
      )
    }
  }

  @Test(
    "Field paths of more than 1,500 bytes, empty vectors and types of the Enterprise edition are rejected")
  func storedFields() throws {
    func rejection(_ fields: MapValue) throws -> String? {
      Self.rejection(Write(.update(try Self.name(), fields: fields)))
    }
    func nested(_ outer: Int, _ inner: Int) -> MapValue {
      [
        String(repeating: "m", count: outer): .map([String(repeating: "k", count: inner): 1])
      ]
    }
    #expect(try rejection(nested(700, 799)) == nil)
    #expect(try rejection(nested(700, 800))?.hasSuffix("is longer than 1500 bytes.") == true)
    #expect(
      try rejection(["a": .array([.map(nested(700, 799))])])?.hasSuffix("is longer than 1500 bytes.") == true)
    #expect(try rejection(["v": .vector([])]) == "Cannot have a zero length vector.")
    #expect(
      try rejection(["o": .map(["__oid__": "507f191e810c19729de860ea"])])
        == "Value type OBJECT_ID is not allowed: field name __oid__ is reserved")
  }

  @Test("A delete removes the document, a verify changes nothing, a transform alone creates it")
  func otherOperations() throws {
    let name = try Self.name()
    #expect(Write(.delete(name)).apply(to: ["a": 1], requestTime: Self.time).fields == nil)
    #expect(Write(.verify(name)).apply(to: ["a": 1], requestTime: Self.time).fields == ["a": 1])
    #expect(Write(.verify(name)).apply(to: nil, requestTime: Self.time).fields == nil)
    let transform = Write(.transform(name, [FieldTransform(FieldPath(field: "n"), .increment(2))]))
    let outcome = transform.apply(to: nil, requestTime: Self.time)
    #expect(outcome.fields == ["n": 2] && outcome.transformResults == [2])
  }

  @Test("Transforms apply after the update's fields, in order, even if several change one field")
  func transformOrder() throws {
    let n = FieldPath(field: "n")
    let write = Write(
      .update(try Self.name(), fields: ["n": 5]), mask: [n],
      transforms: [FieldTransform(n, .increment(2)), FieldTransform(n, .maximum(10))])
    let outcome = write.apply(to: nil, requestTime: Self.time)
    #expect(outcome.fields == ["n": 10] && outcome.transformResults == [7, 10])
  }

  @Test("Server timestamps have a precision of milliseconds")
  func serverTimestamp() {
    #expect(
      Self.apply(.serverTimestamp, to: 1) == .timestamp(Timestamp(seconds: 100, nanoseconds: 123_000_000)))
  }

  @Test(
    "An increment keeps integers and saturates, promotes to double, and replaces values that are not numbers")
  func increment() {
    #expect(Self.apply(.increment(2), to: nil) == 2 && Self.apply(.increment(2), to: "x") == 2)
    #expect(Self.apply(.increment(2), to: 3) == 5 && Self.apply(.increment(0.5), to: 3) == 3.5)
    #expect(Self.apply(.increment(1), to: 1.5) == 2.5)
    #expect(Self.apply(.increment(1), to: .integer(.max)) == .integer(.max))
    #expect(Self.apply(.increment(-1), to: .integer(.min)) == .integer(.min))
    #expect(Self.apply(.increment(.double(.nan)), to: 1).isNaN)
  }

  @Test(
    "Maximum and minimum have the type of the chosen value, keep the field on ties and treat NaN as smallest")
  func extremes() {
    #expect(Self.apply(.maximum(5), to: 3.5) == 5 && Self.apply(.maximum(2.5), to: 3) == 3)
    #expect(Self.apply(.maximum(3.0), to: 3) == 3 && Self.apply(.minimum(3), to: 3.0) == 3.0)
    #expect(
      Self.apply(.maximum(.double(-0.0)), to: 0) == 0 && Self.apply(.minimum(0), to: -0.0) == .double(-0.0))
    #expect(Self.apply(.minimum(1), to: "x") == 1 && Self.apply(.minimum(1), to: nil) == 1)
    #expect(
      Self.apply(.maximum(.double(.nan)), to: 1).isNaN && Self.apply(.minimum(1), to: .double(.nan)).isNaN)
  }

  @Test("Array transforms compare by value: 1 equals 1.0, NaN equals NaN, null equals null")
  func arrays() {
    let nan = Value.double(.nan)
    #expect(Self.apply(.appendMissing([1.0, "b", "b", nan, nan]), to: [1, "a"]) == [1, "a", "b", nan])
    #expect(Self.apply(.appendMissing([1]), to: "x") == [1] && Self.apply(.appendMissing([]), to: nil) == [])
    #expect(Self.apply(.removeAll([1, .null, nan]), to: [1.0, .null, 2, 1, nan]) == [2])
    #expect(Self.apply(.removeAll([1]), to: nil) == [])
    let outcome = FieldTransform(FieldPath(field: "f"), .appendMissing([1])).apply(
      to: nil, requestTime: Self.time)
    #expect(outcome.result == .null)
  }

  @Test("A failed precondition has the status code that clients expect for it")
  func preconditions() throws {
    let name = try Self.name()
    func check(_ condition: Precondition, _ stored: Timestamp?) -> FirestoreError? {
      failure { () throws(FirestoreError) in try condition.check(name, updateTime: stored) }
    }
    let (t1, t2) = (Timestamp(microseconds: 1), Timestamp(microseconds: 2))
    #expect(
      check(.exists(true), t1) == nil && check(.exists(false), nil) == nil
        && check(.updateTime(t1), t1) == nil)
    #expect(check(.exists(true), nil) == .notFound("No document to update: \(name)"))
    #expect(check(.exists(false), t1) == .alreadyExists("Document already exists: \(name)"))
    #expect(
      check(.updateTime(t1), t2)
        == .failedPrecondition("the stored version (2) does not match the required base version (1)"))
    #expect(check(.updateTime(t1), nil)?.code == .failedPrecondition)
  }

  @Test("Invalid writes are rejected with Cloud Firestore's error message")
  func validation() throws {
    let name = try Self.name()
    let transform = FieldTransform(FieldPath(field: "n"), .increment("x"))
    #expect(Self.rejection(Write(.delete(name), mask: [])) == "a delete must not specify a document mask.")
    #expect(
      Self.rejection(
        Write(.delete(name), transforms: [FieldTransform(FieldPath(field: "n"), .serverTimestamp)]))
        == "a delete must not specify a update transform.")
    #expect(Self.rejection(Write(.transform(name, []))) != nil)
    #expect(
      Self.rejection(Write(.update(name, fields: [:]), transforms: [transform])) == "Input must be a number.")
    #expect(
      Self.rejection(Write(.update(name, fields: [:]), mask: [.documentID]))
        == "field name __name__ is reserved")
    #expect(Self.rejection(Write(.update(name, fields: ["__x__": 1]))) != nil)
    #expect(
      Self.rejection(Write(.update(name, fields: ["__x__": 1, "a": 1]), mask: [FieldPath(field: "a")])) == nil
    )
    let elsewhere = try #require(DocumentName(database: DatabaseName(project: "q"), path: "a/b"))
    #expect(Self.rejection(Write(.delete(elsewhere))) != nil)
    #expect(Self.rejection(Write(.verify(name), precondition: .exists(false))) == nil)
  }

  @Test("Transforms of a field and of a field inside it in one write are rejected, as in Google's emulator")
  func nestedTransforms() throws {
    let name = try Self.name()
    func rejection(_ fields: [[String]]) throws -> String? {
      let transforms = try fields.map {
        FieldTransform(try #require(FieldPath(segments: $0)), .increment(1))
      }
      return Self.rejection(Write(.update(name, fields: ["a": 1]), transforms: transforms))
    }
    let nested = "Cannot transform property a and its nested property a.b at the same time."
    #expect(try rejection([["a"], ["a", "b"]]) == nested)
    #expect(try rejection([["a", "b"], ["x"], ["a"], ["a"]]) == nested)
    #expect(try rejection([["a", "b", "c"], ["a", "b-c"], ["a!"], ["a", "b"]]) != nil)
    #expect(try rejection([["a"], ["a"], ["a-b"], ["a\u{0}"], ["b", "a"]]) == nil)
    #expect(try rejection([["a", "b"], ["a", "c"], ["a", "b"]]) == nil)
  }

  @Test(
    "Before each step a write reports its cost: the fields of the maps on its paths, and the elements of its arrays"
  )
  func stepCosts() throws {
    let name = try Self.name()
    let fields: MapValue = [
      "a": ["x": 1, "y": ["z": 1]], "b": .array([Value](repeating: .null, count: 50)), "c": 1,
    ]
    func spent(_ write: Write, on existing: MapValue?) -> [Int] {
      var spent: [Int] = []
      let outcome = write.apply(to: existing, requestTime: Self.time) { spent.append($0) }
      #expect(outcome == write.apply(to: existing, requestTime: Self.time))
      return spent
    }
    func path(_ segments: String...) throws -> FieldPath { try #require(FieldPath(segments: segments)) }
    let append = FieldTransform(try path("b"), .appendMissing([1, 2]))
    #expect(spent(Write(.update(name, fields: fields)), on: fields) == [])
    #expect(spent(Write(.delete(name)), on: fields) == [])
    #expect(spent(Write(.update(name, fields: [:]), mask: [try path("c")]), on: fields) == [3])
    let nested = [try path("a", "x"), try path("a", "y", "z"), try path("a", "y", "w"), try path("q", "r")]
    #expect(spent(Write(.update(name, fields: [:]), mask: nested), on: fields) == [3 + 2 + 1])
    #expect(spent(Write(.transform(name, [append, append])), on: fields) == [3, 52, 54])
    #expect(spent(Write(.update(name, fields: [:]), mask: [], transforms: [append]), on: nil) == [0, 0, 2])
  }

  @Test("Comparing only the fields that a write names finds whether the write changed the document")
  func changes() throws {
    var random = SystemRandomNumberGenerator()
    let name = try Self.name()
    func map(_ depth: Int) -> MapValue {
      MapValue(
        ["a", "b", "c"].filter { _ in Bool.random(using: &random) }.map { key in
          let isLeaf = depth == 0 || Bool.random(using: &random)
          return (key, isLeaf ? .integer(Int64.random(in: 0..<2, using: &random)) : .map(map(depth - 1)))
        })
    }
    func path() throws -> FieldPath {
      try #require(
        FieldPath(
          segments: (0..<Int.random(in: 1...3, using: &random)).map { _ in
            ["a", "b", "c"].randomElement(using: &random) ?? "a"
          }))
    }
    for _ in 0..<2_000 {
      var write = Write(.update(name, fields: map(2)))
      if Bool.random(using: &random) { write.mask = try (0..<3).map { _ in try path() } }
      if Bool.random(using: &random) { write.transforms = [FieldTransform(try path(), .maximum(1))] }
      let before = Int.random(in: 0..<5, using: &random) == 0 ? nil : map(2)
      let after = write.apply(to: before, requestTime: Self.time).fields
      #expect(write.hasChanged(before, into: after) == (before != after), "\(write) on \(before as Any)")
    }
    #expect(!Write(.verify(name)).hasChanged(["a": 1], into: ["a": 1]))
    #expect(Write(.delete(name)).hasChanged(["a": 1], into: nil))
  }

  @Test("Timestamps of a write are truncated to microseconds before comparisons with stored values")
  func stored() throws {
    let name = try Self.name()
    let (precise, truncated): (Value, Value) = (
      .timestamp(Timestamp(seconds: 1, nanoseconds: 1_999)),
      .timestamp(Timestamp(seconds: 1, nanoseconds: 1_000))
    )
    let field = FieldPath(field: "t")
    let write = Write(
      .update(name, fields: ["u": .array([precise])]), mask: [FieldPath(field: "u")],
      transforms: [FieldTransform(field, .appendMissing([precise, truncated]))])
    let outcome = write.stored.apply(to: ["t": .array([truncated])], requestTime: Self.time)
    #expect(outcome.fields == ["t": .array([truncated]), "u": .array([truncated])])
    let remove = Write(.transform(name, [FieldTransform(field, .removeAll([precise]))]))
    #expect(
      remove.stored.apply(to: ["t": .array([truncated])], requestTime: Self.time).fields == ["t": .array([])])
  }
}
