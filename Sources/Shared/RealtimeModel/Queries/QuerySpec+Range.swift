// Computes the range of sort keys inside a query's bounds.

extension QuerySpec {
  /// The sort key of the lower bound; nil without a lower bound. It is inside the range if the bound is inclusive.
  ///
  /// If a lower bound has only a value, its sort key uses the minimum child key. The sort key then precedes all children
  /// with that value, and even an exclusive bound includes them. ``QuerySpec/Bound/after(_:)`` excludes them.
  public var startSortKey: SortKey? { start.map { sortKey(of: $0, missingKey: .minimum) } }

  /// The sort key of the upper bound; nil without an upper bound. If an upper bound has only a value, its sort key uses
  /// the maximum child key, which follows all children with that value.
  public var endSortKey: SortKey? { end.map { sortKey(of: $0, missingKey: .maximum) } }

  private func sortKey(of bound: Bound, missingKey: ChildKey) -> SortKey {
    if ordering == .key {
      guard case .string(let text)? = bound.value else { return SortKey(value: .null, key: missingKey) }
      return SortKey(value: .null, key: ChildKey(bound: text))
    }
    return SortKey(value: bound.value.map { .leaf($0) } ?? .null, key: bound.key ?? missingKey)
  }

  /// Whether a sort key lies inside the bounds.
  public func contains(_ sortKey: SortKey) -> Bool { QueryRange(self).contains(sortKey) }
}

/// A query's bounds as sort keys, computed once for many comparisons.
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

  /// Whether a sort key lies inside the range.
  public func contains(_ sortKey: SortKey) -> Bool { isAfterStart(sortKey) && isBeforeEnd(sortKey) }

  func isAfterStart(_ sortKey: SortKey) -> Bool {
    guard let start else { return true }
    let order = sortKey.order(against: start)
    return order > 0 || (order == 0 && startIsInclusive)
  }

  func isBeforeEnd(_ sortKey: SortKey) -> Bool {
    guard let end else { return true }
    let order = sortKey.order(against: end)
    return order < 0 || (order == 0 && endIsInclusive)
  }
}
