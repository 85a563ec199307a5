// Compares values of all types in one total order, for queries, indexes and cursors.
//
// Invariant: `compare` is a total preorder; `.same` is query equality (1 = 1.0, 0.0 = −0.0, NaN = NaN). The bytes of
// `IndexKeyEncoder` must sort in the same order.

extension Value {
  /// Compares two values in the database's order across types.
  public static func compare(_ a: Value, _ b: Value) -> ComparisonOrder {
    switch (a, b) {
    case (.null, .null): return .same
    case (.boolean(let a), .boolean(let b)): return a == b ? .same : (b ? .ascending : .descending)
    case (.integer(let a), .integer(let b)): return ComparisonOrder.compare(a, b)
    case (.double(let a), .double(let b)): return Numbers.compare(a, b)
    case (.integer(let a), .double(let b)): return Numbers.compare(a, b)
    case (.double(let a), .integer(let b)): return Numbers.compare(b, a).reversed
    case (.timestamp(let a), .timestamp(let b)): return ComparisonOrder.compare(a, b)
    case (.pendingServerTimestamp(let a), .pendingServerTimestamp(let b)):
      return ComparisonOrder.compare(a.localWriteTime, b.localWriteTime)
    case (.string(let a), .string(let b)): return ComparisonOrder.compare(utf8: a, b)
    case (.bytes(let a), .bytes(let b)): return ComparisonOrder.compare(bytes: a, b)
    case (.reference(let a), .reference(let b)): return DocumentName.compare(a, b)
    case (.geoPoint(let a), .geoPoint(let b)): return GeoPoint.compare(a, b)
    case (.array(let a), .array(let b)): return compare(arrays: a, b)
    case (.vector(let a), .vector(let b)): return compare(vectors: a, b)
    case (.map(let a), .map(let b)): return compare(maps: a, b)
    default: return ComparisonOrder.compare(a.kind, b.kind)
    }
  }

  /// Query equality: numbers by value, NaN equal to itself, at every depth.
  public func isQueryEqual(to other: Value) -> Bool { Value.compare(self, other) == .same }

  private static func compare(arrays a: [Value], _ b: [Value]) -> ComparisonOrder {
    for (x, y) in zip(a, b) {
      let ordering = compare(x, y)
      if ordering != .same { return ordering }
    }
    return ComparisonOrder.compare(a.count, b.count)
  }

  private static func compare(vectors a: [Double], _ b: [Double]) -> ComparisonOrder {
    if a.count != b.count { return ComparisonOrder.compare(a.count, b.count) }
    for (x, y) in zip(a, b) {
      let ordering = Numbers.compare(x, y)
      if ordering != .same { return ordering }
    }
    return .same
  }

  private static func compare(maps a: MapValue, _ b: MapValue) -> ComparisonOrder {
    for (x, y) in zip(a.entries, b.entries) {
      let keys = ComparisonOrder.compare(utf8: x.key, y.key)
      if keys != .same { return keys }
      let values = compare(x.value, y.value)
      if values != .same { return values }
    }
    return ComparisonOrder.compare(a.count, b.count)
  }
}
