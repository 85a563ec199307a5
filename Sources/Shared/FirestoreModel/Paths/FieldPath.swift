// A field path: the path of a field inside a document.
//
// Invariant: a path has at least one segment, and none is empty. Its text form keeps every segment, since segments that
// are not simple names are quoted.

/// The path of a field: the names of the maps that contain it, then the field's name.
public struct FieldPath: Sendable {
  /// The names. A dot inside a name is part of the name.
  public let segments: [String]

  /// The path of a top-level field. The name may contain any characters.
  public init(field name: String) { segments = [name] }

  /// Makes a path of names; nil if there are none or one is empty.
  public init?(segments: [String]) {
    guard !segments.isEmpty, !segments.contains(where: \.isEmpty) else { return nil }
    self.segments = segments
  }

  init(unchecked segments: [String]) { self.segments = segments }

  /// `__name__`, which addresses the document's name in filters, orders, cursors and projections.
  public static let documentID = FieldPath(field: "__name__")

  /// Whether this is `__name__`.
  public var isDocumentID: Bool { segments.count == 1 && segments[0] == "__name__" }

  /// The number of names.
  public var count: Int { segments.count }

  /// The path without its first name; nil if it has only one name.
  public var dropFirst: FieldPath? {
    segments.count > 1 ? FieldPath(unchecked: Array(segments.dropFirst())) : nil
  }

  /// The path of a field inside this one.
  public func appending(_ name: String) -> FieldPath { FieldPath(unchecked: segments + [name]) }

  /// Whether this path is `other` or lies inside it.
  public func hasPrefix(_ other: FieldPath) -> Bool {
    guard other.count <= count else { return false }
    for i in 0..<other.count where !segments[i].hasSameUTF8(as: other.segments[i]) { return false }
    return true
  }

  /// Compares name by name in UTF-8; shorter first.
  public static func compare(_ a: FieldPath, _ b: FieldPath) -> ComparisonOrder {
    for (x, y) in zip(a.segments, b.segments) {
      let ordering = ComparisonOrder.compare(utf8: x, y)
      if ordering != .same { return ordering }
    }
    return ComparisonOrder.compare(a.count, b.count)
  }
}

extension FieldPath: Hashable, Comparable {
  /// Whether all names have the same bytes.
  public static func == (a: FieldPath, b: FieldPath) -> Bool { a.count == b.count && a.hasPrefix(b) }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) { for name in segments { name.hashUTF8(into: &hasher) } }

  /// Orders as `compare`.
  public static func < (a: FieldPath, b: FieldPath) -> Bool { compare(a, b) == .ascending }
}
