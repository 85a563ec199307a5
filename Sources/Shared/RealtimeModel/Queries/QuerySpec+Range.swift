// Which places of an order lie inside a query's bounds.

extension QuerySpec {
  /// The place from which the bounds take children in; nil for no lower bound. The place itself counts if the bound is
  /// inclusive.
  ///
  /// A bound without a key begins before every key of its value, also if it is exclusive: ``QuerySpec/Bound/after(_:)``
  /// leaves them out.
  public var startSortKey: SortKey? { start.map { place(of: $0, missingKey: .minimum) } }

  /// The place up to which the bounds take children in; nil for no upper bound. One without a key ends behind every key
  /// of its value.
  public var endSortKey: SortKey? { end.map { place(of: $0, missingKey: .maximum) } }

  private func place(of bound: Bound, missingKey: ChildKey) -> SortKey {
    if ordering == .key {
      guard case .string(let text)? = bound.value else { return SortKey(value: .null, key: missingKey) }
      return SortKey(value: .null, key: ChildKey(bound: text))
    }
    return SortKey(value: bound.value.map { .leaf($0) } ?? .null, key: bound.key ?? missingKey)
  }

  /// Whether a place lies inside the bounds.
  public func contains(_ place: SortKey) -> Bool { QueryRange(self).contains(place) }
}

/// A query's bounds, ready for comparing.
public struct QueryRange: Sendable {
  private let start: SortKey?
  private let end: SortKey?
  private let startIsInclusive: Bool
  private let endIsInclusive: Bool

  /// The bounds of a query.
  public init(_ query: QuerySpec) {
    start = query.startSortKey
    end = query.endSortKey
    startIsInclusive = query.start?.isInclusive ?? true
    endIsInclusive = query.end?.isInclusive ?? true
  }

  /// Whether a place lies inside.
  public func contains(_ place: SortKey) -> Bool { isAfterStart(place) && isBeforeEnd(place) }

  func isAfterStart(_ place: SortKey) -> Bool {
    guard let start else { return true }
    let order = place.order(against: start)
    return order > 0 || (order == 0 && startIsInclusive)
  }

  func isBeforeEnd(_ place: SortKey) -> Bool {
    guard let end else { return true }
    let order = place.order(against: end)
    return order < 0 || (order == 0 && endIsInclusive)
  }
}
