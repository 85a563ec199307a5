// Generates random Firestore values for property tests, from a seed. Many of them are almost equal, which finds errors
// in comparisons: integers near the limit that a double represents exactly, strings of few characters, and
// arrays and maps with common prefixes.

package import FirestoreModel

/// Generates random values of Cloud Firestore.
package struct RandomValues {
  package var random: SeededGenerator

  package init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  package mutating func below(_ bound: Int) -> Int { random.below(bound) }

  package mutating func pick<T>(_ items: [T]) -> T { items[below(items.count)] }

  package mutating func value(depth: Int = 0, inArray: Bool = false) -> Value {
    let kinds = depth < 3 ? (inArray ? 11 : 12) : 9
    switch below(kinds) {
    case 0: return .null
    case 1: return .boolean(below(2) == 0)
    case 2, 3: return number()
    case 4: return .timestamp(timestamp())
    case 5: return .string(text())
    case 6: return .bytes(bytes())
    case 7: return .reference(documentName())
    case 8: return .geoPoint(geoPoint())
    case 9: return .vector((0..<below(4)).map { _ in double() })
    case 10: return .map(map(depth: depth + 1))
    default: return .array((0..<below(4)).map { _ in value(depth: depth + 1, inArray: true) })
    }
  }

  package mutating func map(depth: Int = 0) -> MapValue {
    MapValue((0..<below(4)).map { _ in (key(), value(depth: depth)) })
  }

  package mutating func key() -> String {
    pick(["a", "b", "ab", "a.b", "ä", "\u{FFFD}", "😀", "a\u{0}", "z9"])
  }

  package mutating func number() -> Value { below(2) == 0 ? .integer(integer()) : .double(double()) }

  package mutating func integer() -> Int64 {
    switch below(6) {
    case 0: return pick([Int64.min, .max, 0, 1, -1])
    case 1: return Int64(below(7)) - 3
    case 2: return (Int64(1) << Int64(50 + below(13))) + Int64(below(5)) - 2
    case 3: return -(Int64(1) << Int64(50 + below(13))) + Int64(below(5)) - 2
    case 4: return Int64.max - Int64(below(2048))
    default: return Int64(bitPattern: random.next()) >> Int64(below(63))
    }
  }

  package mutating func double() -> Double {
    switch below(6) {
    case 0:
      return pick([
        0, -0.0, .nan, .infinity, -.infinity, .leastNonzeroMagnitude, -.leastNonzeroMagnitude,
        .greatestFiniteMagnitude, 0x1p63, -0x1p63, 0x1p53,
      ])
    case 1: return Double(below(7)) - 3 + pick([0, 0.5, 0.25])
    case 2: return Double(integer())
    case 3: return Double(integer()).nextUp
    case 4: return Double(integer()).nextDown
    default: return Double(bitPattern: random.next())
    }
  }

  package mutating func timestamp() -> Timestamp {
    let seconds = pick([0, -1, 1, 1_700_000_000, Timestamp.minimum.seconds, Timestamp.maximum.seconds])
    return Timestamp(seconds: seconds, nanoseconds: Int32(pick([0, 1, 999, 1000, 999_999_999])))
  }

  package mutating func text() -> String {
    let letters = ["a", "b", "\u{0}", "\u{1}", "é", "e\u{301}", "\u{FFFD}", "😀", "~", "aaaaaaaa"]
    return (0..<below(5)).map { _ in pick(letters) }.joined()
  }

  package mutating func bytes() -> [UInt8] {
    (0..<below(6)).map { _ in UInt8(pick([0, 1, 2, 127, 128, 254, 255])) }
  }

  package mutating func documentName() -> DocumentName {
    let database = DatabaseName(
      project: pick(["p", "p-1", "q"]), database: pick(["(default)", "other", "others"]))
    let ids = ["a", "b", "a-b", "a\u{1}", "é", "😀", "\u{FFFD}", "__id7__", "__id-7__", "__id12__"]
    // Numeric IDs are used for documents only, because collections cannot have them.
    let path = ResourcePath(
      (0..<2 * (1 + below(2))).map { $0.isMultiple(of: 2) ? ids[below(7)] : pick(ids) })
    guard let name = DocumentName(database: database, path: path) else { preconditionFailure("even path") }
    return name
  }

  package mutating func geoPoint() -> GeoPoint {
    GeoPoint(
      latitude: pick([0, -0.0, 90, -90, 12.5, -12.5]), longitude: pick([0, -0.0, 180, -180, 7.25, -7.25]))
  }
}
