// Tests the total order of values across types, and the two equalities: query equality and strict equality.

import FirestoreModel
import RandomModels
import Testing

@Suite("Order of values", .timeLimit(.minutes(10)))
struct ValueOrderTests {
  static let database = DatabaseName(project: "p")

  static func reference(_ path: ResourcePath) throws -> Value {
    .reference(try #require(DocumentName(database: database, path: path)))
  }

  @Test(
    "Types sort as null, boolean, number, timestamp, text, bytes, reference, geo point, array, vector, map")
  func ordersTypes() throws {
    let ascending: [Value] = [
      .null, false, true, .double(.nan), .double(-.infinity), .integer(.min), -1.5, 0, 0.5, 1,
      .double(.infinity), .timestamp(.minimum), .timestamp(.epoch), .timestamp(.maximum),
      .pendingServerTimestamp(PendingServerTimestamp(localWriteTime: .epoch)), "", "a", "\u{FFFD}", "😀",
      .bytes([]), .bytes([0]), .bytes([0, 1]), .bytes([128]), try Self.reference("a/__id2__"),
      try Self.reference("a/__id10__"), try Self.reference("a/b"), try Self.reference("a/b/c/d"),
      try Self.reference("a/b-"), .geoPoint(GeoPoint(latitude: -90, longitude: 0)),
      .geoPoint(GeoPoint(latitude: 0, longitude: -1)), .geoPoint(GeoPoint(latitude: 0, longitude: 1)), [],
      [1], [1, "a"], [2], .vector([]), .vector([9]), .vector([1, 2]), .vector([1, 3]), [:], ["a": 1],
      ["a": 1, "b": 0], ["a": 2], ["b": 0],
    ]
    for i in ascending.indices {
      for j in ascending.indices {
        #expect(
          Value.compare(ascending[i], ascending[j]) == ComparisonOrder.compare(i, j),
          "\(ascending[i]) and \(ascending[j])")
      }
    }
  }

  @Test("The order is total: antisymmetric and transitive on random values")
  func isTotal() {
    var source = RandomValues(seed: 11)
    for _ in 0..<30_000 {
      let (a, b, c) = (source.value(), source.value(), source.value())
      #expect(Value.compare(a, b) == Value.compare(b, a).reversed)
      if Value.compare(a, b) != .descending, Value.compare(b, c) != .descending {
        #expect(Value.compare(a, c) != .descending, "\(a) \(b) \(c)")
      }
      if a == b { #expect(a.isQueryEqual(to: b) && a.hashValue == b.hashValue) }
      #expect(a == a && a.isQueryEqual(to: a))
    }
  }

  @Test("1 and 1.0, and 0.0 and −0.0, are equal in queries but not strictly; NaN equals NaN in both")
  func numberEquality() {
    #expect((1 as Value).isQueryEqual(to: 1.0))
    #expect((1 as Value) != (1.0 as Value))
    #expect(
      Value.double(0).isQueryEqual(to: .double(-0.0)) && Value.integer(0).isQueryEqual(to: .double(-0.0)))
    #expect(Value.double(0) != .double(-0.0))
    #expect(Value.double(.nan) == .double(-.nan) && Value.double(.nan).isQueryEqual(to: .double(.nan)))
    #expect((["a": [1]] as Value).isQueryEqual(to: ["a": [1.0]]))
    #expect((["a": [1]] as Value) != ["a": [1.0]])
  }

  @Test("Integers and doubles compare exactly near 2^53 and 2^63")
  func exactNumbers() {
    let limit: Int64 = 1 << 53
    #expect(Numbers.compare(limit, 0x1p53) == .same)
    #expect(Numbers.compare(limit + 1, 0x1p53) == .descending)
    #expect(Numbers.compare(limit - 1, 0x1p53) == .ascending)
    #expect(Numbers.compare(-limit - 1, -0x1p53) == .ascending)
    #expect(Numbers.compare(Int64.max, 0x1p63) == .ascending)
    #expect(Numbers.compare(Int64.max, (0x1p63).nextDown) == .descending)
    #expect(Numbers.compare(Int64.min, -0x1p63) == .same)
    #expect(Numbers.compare(Int64.min, (-0x1p63).nextDown) == .descending)
    #expect(Numbers.compare(Int64(3), 3.5) == .ascending && Numbers.compare(Int64(-3), -3.5) == .descending)
    #expect(
      Numbers.compare(Int64(0), .nan) == .descending && Numbers.compare(Int64(0), -.infinity) == .descending)
  }

  @Test("Text compares by UTF-8, not by UTF-16 and not by canonical equivalence")
  func textOrder() {
    #expect(("\u{FFFD}" as String).precedesInUTF8("😀"))
    #expect(!"é".hasSameUTF8(as: "e\u{301}"))
    #expect(Value.string("é") != .string("e\u{301}"))
    let map: MapValue = ["é": 1, "e\u{301}": 2]
    #expect(map.count == 2)
    #expect(map["é"] == 1 && map["e\u{301}"] == 2)
    #expect(ResourcePath(["é"]) != ResourcePath(["e\u{301}"]))
    #expect(Set([FieldPath(field: "é"), FieldPath(field: "e\u{301}")]).count == 2)
  }

  @Test("Long text compares correctly at any position of the difference")
  func longText() {
    for position in 0..<40 {
      var a = [UInt8](repeating: 0x61, count: 40)
      let b = a
      a[position] = 0x62
      #expect(ComparisonOrder.compare(bytes: a, b) == .descending)
      #expect(
        ComparisonOrder.compare(utf8: String(decoding: b, as: UTF8.self), String(decoding: a, as: UTF8.self))
          == .ascending)
      #expect(ComparisonOrder.compare(bytes: Array(b.prefix(position)), b) == .ascending)
    }
  }

  @Test("A map keeps its keys sorted by UTF-8, and the last value of a repeated key")
  func mapKeys() {
    var map = MapValue([("b", 1), ("a", 2), ("b", 3), ("😀", 4), ("\u{FFFD}", 5)])
    #expect(map.entries.map(\.key) == ["a", "b", "\u{FFFD}", "😀"])
    #expect(map["b"] == 3)
    map["b"] = nil
    map["c"] = true
    map["a"] = 9
    #expect(map == ["a": 9, "c": true, "\u{FFFD}": 5, "😀": 4])
    #expect(map["missing"] == nil)
  }

  @Test("Timestamps are truncated, never rounded, also before 1970")
  func timestamps() {
    let time = Timestamp(seconds: 5, nanoseconds: 123_456_999)
    #expect(time.truncatedToMicroseconds.nanoseconds == 123_456_000)
    #expect(time.truncatedToMilliseconds.nanoseconds == 123_000_000)
    for microseconds: Int64 in [0, 1, -1, -1_000_000, -1_000_001, 1_766_494_185_829_645] {
      let time = Timestamp(microseconds: microseconds)
      #expect(time.microseconds == microseconds)
      #expect(time.nanoseconds >= 0)
    }
    #expect(Timestamp.minimum.isInRange && Timestamp.maximum.isInRange)
    #expect(!Timestamp(seconds: Timestamp.maximum.seconds + 1).isInRange)
    #expect(!Timestamp(seconds: 0, nanoseconds: -1).isInRange)
    #expect(Timestamp(seconds: .max).microseconds == .max)
  }
}
