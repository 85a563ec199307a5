// A random schema: the few fields and the few values that random documents have, so that filters often match.

import FirestoreModel
import RandomModels

/// The fields and values for random documents and queries.
struct RandomSchema: Equatable {
  /// Fields with any value.
  var single: [String]
  /// Fields with a map, and the fields inside.
  var maps: [(field: String, inner: [String])]
  /// Fields with an array.
  var lists: [String]
  /// The scalar values; arrays and maps are built from them.
  var values: [Value]

  /// Every field that queries use.
  var paths: [FieldPath] {
    single.map { FieldPath(field: $0) }
      + maps.flatMap { map in map.inner.compactMap { FieldPath(segments: [map.field, $0]) } }
      + lists.map { FieldPath(field: $0) }
  }

  static func == (a: RandomSchema, b: RandomSchema) -> Bool {
    a.paths == b.paths && a.values == b.values
  }

  /// Three fields, a map and a list, with values of every type.
  static let standard = RandomSchema(
    single: ["a", "b", "c"], maps: [("m", ["x", "y"])], lists: ["tags"], values: everyKind)

  private static let long = String(repeating: "l", count: 1_600)

  private static let everyKind: [Value] = [
    .null, true, false, 0, 1, 2, 3, 1.0, 2.5, -0.0, .double(.nan), .double(.infinity), "", "a", "b", "ab",
    .string(long), .string(long + "1"), .bytes([1, 2]), .timestamp(Timestamp(microseconds: 5)),
    DocumentName(database: DatabaseName(project: "demo"), path: "c/d1").map(Value.reference) ?? .null,
    .geoPoint(GeoPoint(latitude: 1, longitude: 2)), .vector([1, 2]),
  ]

  private static let unusualValues: [Value] = [
    -1, .integer(.min), .double(-.infinity), 0.5, "\u{0}", "é", "\u{FFFD}", "😀", .bytes([]), .bytes([0xFF]),
    .timestamp(Timestamp(microseconds: -1)), .timestamp(Timestamp(microseconds: 1_700_000_000_000_001)),
    DocumentName(database: DatabaseName(project: "other"), path: "c/__id7__").map(Value.reference) ?? .null,
    .geoPoint(GeoPoint(latitude: -90, longitude: 180)), .vector([-1]), .map([:]), .array([]),
    .map(["x": 1, "y": .null]), .array([1, .double(.nan)]),
  ]

  /// Generates one to four fields, up to two maps and two lists, over two to twelve values; sometimes over
  /// values of every type. Some field names need quotes.
  static func random(_ random: inout SeededGenerator) -> RandomSchema {
    let names = ["a", "b", "c", "d.e", "é", "0", "B", "`"].shuffled(using: &random)
    let inner = ["x", "y", "z.z", "a"].shuffled(using: &random)
    var values = everyKind + unusualValues
    if Int.random(in: 0..<5, using: &random) > 0 {
      values = Array(values.shuffled(using: &random).prefix(Int.random(in: 2...12, using: &random)))
    }
    return RandomSchema(
      single: Array(names.prefix(Int.random(in: 1...4, using: &random))),
      maps: ["m", "n.o"].prefix(Int.random(in: 0...2, using: &random)).map {
        ($0, Array(inner.prefix(Int.random(in: 1...3, using: &random))))
      },
      lists: Array(["tags", "l l"].prefix(Int.random(in: 0...2, using: &random))), values: values)
  }
}
