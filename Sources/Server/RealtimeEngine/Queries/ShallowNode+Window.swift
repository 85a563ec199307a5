// Applies the bounds and limits of a query to a shallow read; the result is the query's window. Only the order by key
// is supported, because a shallow read reads only the keys of the children.

import RealtimeModel

extension ShallowNode {
  /// Returns the keys in a query's window.
  ///
  /// - Throws: ``RealtimeError`` with status `failure` for start or end bounds in an order other than by
  ///   key. Limits without bounds apply to the order by key.
  func window(_ query: QuerySpec) throws(RealtimeError) -> ShallowNode {
    guard !query.showsAll else { return self }
    guard query.ordering == .key || (query.start == nil && query.end == nil) else {
      throw RealtimeError(.failure, "shallow reads can only be ordered by key")
    }
    guard case .children(let keys) = self else { return .empty }
    let byKey = QuerySpec(ordering: .key, start: query.start, end: query.end, limit: nil)
    var shown = keys.filter { byKey.contains(SortKey(value: .null, key: $0)) }
    switch query.limit {
    case .first(let count): shown = Array(shown.prefix(count))
    case .last(let count): shown = Array(shown.suffix(count))
    case nil: break
    }
    return shown.isEmpty ? .empty : .children(shown)
  }
}
