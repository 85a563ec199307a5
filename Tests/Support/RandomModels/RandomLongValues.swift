// Generates random long values, whose length is near 1,500 bytes. Index entries truncate text at that length. Many
// pairs of values have texts that are equal in the first 1,500 bytes. The two values of such a pair differ only in later
// bytes of the text, or in a later element of the array or map.

package import FirestoreModel

extension RandomValues {
  /// Returns text, bytes, or an array or map that holds them.
  /// - Parameters:
  ///   - isElement: whether the value is in an array, and therefore not an array.
  ///   - isWide: whether a scalar may take more bytes in an index key than 1,500 letters do: text of NUL characters, which
  ///     are escaped, long references and long vectors.
  package mutating func longValue(depth: Int = 0, isElement: Bool = false, isWide: Bool) -> Value {
    let kinds = depth < 3 ? (isElement ? 7 : 10) : 4
    switch below(kinds) {
    case 0, 1: return .string(longText(isWide: isWide))
    case 2: return .bytes(Array(longText(isWide: isWide).utf8))
    case 3: return isWide && below(2) == 0 ? wideScalar() : shortScalar()
    case 4: return .map(["a": .string(longText(isWide: isWide)), "b": shortScalar()])
    case 5, 6:
      return .map(
        MapValue((0..<1 + below(2)).map { _ in (mapKey(depth), longValue(depth: depth + 1, isWide: isWide)) })
      )
    case 7, 8: return .array([.string(longText(isWide: isWide)), shortScalar()])
    default:
      return .array(
        (0..<below(4)).map { _ in longValue(depth: depth + 1, isElement: true, isWide: isWide) })
    }
  }

  private mutating func longText(isWide: Bool) -> String {
    let letter = pick(["x", "x", "x", "x", "é", isWide ? "\u{0}" : "😀"])
    let bytes = pick([1_480, 1_492, 1_496, 1_498, 1_499, 1_500, 1_501, 1_600])
    return String(repeating: letter, count: bytes / letter.utf8.count)
      + pick(["", "", "a", "b", "é", "~", "\u{0}", "\u{1}"])
  }

  private mutating func shortScalar() -> Value {
    pick([.null, false, true, 0, 1, 2.5, "", "a", "x", .bytes([0]), .bytes([255])])
  }

  /// Returns a reference or a vector that may exceed the byte limit of a value in a key.
  private mutating func wideScalar() -> Value {
    if below(2) == 0 {
      return .vector([Double](repeating: 1, count: pick([382, 383, 384, 400])) + pick([[], [1], [2]]))
    }
    let ids = (0..<pick([2, 4])).map { _ in
      String(repeating: "x", count: pick([1, 1_000, 1_499])) + pick(["a", "b"])
    }
    guard let name = DocumentName(database: DatabaseName(project: "p"), path: ResourcePath(ids)) else {
      preconditionFailure("even path")
    }
    return .reference(name)
  }

  /// Returns the name of a field in a map. A path is limited to 1,500 bytes, so that only one of its names is long.
  private mutating func mapKey(_ depth: Int) -> String {
    depth == 0 && below(4) == 0
      ? String(repeating: "k", count: pick([1_470, 1_480])) + pick(["", "a"]) : pick(["a", "b"])
  }
}
