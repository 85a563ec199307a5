// A resource path: the path of a document or collection below a database's `documents`.
//
// Invariant: paths sort segment by segment, never as joined text ("-" sorts before "/"). A path sorts before its
// descendants.

/// Alternating collection ids and document ids: `books/b1/notes`. The empty path is the root.
///
/// A path with an odd number of segments names a collection, a path with an even number a document.
public struct ResourcePath: Sendable {
  /// The ids in order, without slashes.
  public var segments: [String]

  /// The root: the parent of top-level collections.
  public static let root = ResourcePath([])

  /// Makes a path of segments without validating them.
  public init(_ segments: [String]) { self.segments = segments }

  /// Splits at slashes without checking ids; empty text is the root.
  public init(splitting text: String) {
    // Split by bytes: "/" with a combining mark is one `Character` that differs from "/".
    segments =
      text.utf8.isEmpty
      ? [] : text.utf8.split(separator: 0x2F, omittingEmptySubsequences: false).map { String(Substring($0)) }
  }

  /// The number of segments.
  public var count: Int { segments.count }
  /// Whether this is the root.
  public var isEmpty: Bool { segments.isEmpty }
  /// Whether this names a document.
  public var isDocument: Bool { !segments.isEmpty && segments.count.isMultiple(of: 2) }
  /// Whether this names a collection.
  public var isCollection: Bool { !segments.count.isMultiple(of: 2) }
  /// The last segment: the document's or collection's id; nil for the root.
  public var id: String? { segments.last }
  /// The path without its last segment; nil for the root.
  public var parent: ResourcePath? { segments.isEmpty ? nil : ResourcePath(Array(segments.dropLast())) }

  /// The path of a child.
  public func appending(_ id: String) -> ResourcePath { ResourcePath(segments + [id]) }

  /// The path of a descendant.
  public func appending(_ path: ResourcePath) -> ResourcePath { ResourcePath(segments + path.segments) }

  /// Whether this path is `other` or lies below it.
  public func hasPrefix(_ other: ResourcePath) -> Bool {
    guard other.count <= count else { return false }
    for i in 0..<other.count where !segments[i].hasSameUTF8(as: other.segments[i]) { return false }
    return true
  }

  /// Compares segment by segment: numeric ids first and by number, then text by UTF-8; shorter first.
  public static func compare(_ a: ResourcePath, _ b: ResourcePath) -> ComparisonOrder {
    let count = min(a.count, b.count)
    for i in 0..<count {
      let ordering = ResourceID.compare(a.segments[i], b.segments[i])
      if ordering != .same { return ordering }
    }
    return ComparisonOrder.compare(a.count, b.count)
  }
}

extension ResourcePath: Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// Whether all segments have the same bytes.
  public static func == (a: ResourcePath, b: ResourcePath) -> Bool { a.count == b.count && a.hasPrefix(b) }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    for segment in segments { segment.hashUTF8(into: &hasher) }
    hasher.combine(segments.count)
  }

  /// Orders as `compare`.
  public static func < (a: ResourcePath, b: ResourcePath) -> Bool { compare(a, b) == .ascending }

  /// The segments joined by slashes.
  public var description: String { segments.joined(separator: "/") }

  /// Splits at slashes, for tests and constants.
  public init(stringLiteral value: String) { self.init(splitting: value) }
}
