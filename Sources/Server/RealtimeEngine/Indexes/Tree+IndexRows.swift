// Reads the window of a query (the children that it selects) from index rows, and computes the index rows of a child.

import OrderedStore
import RealtimeModel

extension Tree {
  /// The keys of a query's window, read from index rows; nil if a truncated row makes the order uncertain.
  func indexedKeys(_ query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    let prefix = IndexRows.prefix(of: path, by: query.ordering)
    var range = KeyRange(prefix: prefix)
    if let start = query.start, let sortKey = query.startSortKey {
      guard let bytes = IndexRows.bound(sortKey) else { return nil }
      range.start = prefix + bytes + (start.isInclusive ? [] : [0x00])
    }
    if let end = query.end, let sortKey = query.endSortKey {
      guard let bytes = IndexRows.bound(sortKey) else { return nil }
      range.end = prefix + bytes + (end.isInclusive ? [0x00] : [])
    }
    guard range.end.map({ !$0.lexicographicallyPrecedes(range.start) }) ?? true else { return [] }
    var reverse = false
    if case .last = query.limit { reverse = true }
    let limit = query.limit?.count ?? .max
    var keys: [ChildKey] = []
    var hasTruncatedRow = false
    try view.scan(range, reverse: reverse) { _, value, _ in
      guard let flag = value.first, flag == 0x00 else {
        hasTruncatedRow = true
        return false
      }
      keys.append(ChildKey(String(decoding: UnsafeRawBufferPointer(rebasing: value[1...]), as: UTF8.self)))
      return keys.count < limit
    }
    return hasTruncatedRow ? nil : keys
  }

  /// The index rows of a child, as a dictionary from row keys to row values.
  func indexRows(
    of key: ChildKey, in location: Path, by orderings: [Ordering]
  ) throws -> [[UInt8]: [UInt8]] {
    let path = location.child(key)
    let childValue = try orderingValue(at: path)
    if childValue == .null { return [:] }
    var rows: [[UInt8]: [UInt8]] = [:]
    for ordering in orderings {
      var value = childValue
      if case .child(let inner) = ordering {
        value = childValue == .object ? try orderingValue(at: path.appending(inner)) : .null
      }
      let row = IndexRows.row(SortKey(value: value, key: key))
      rows[IndexRows.prefix(of: location, by: ordering) + row.key] = row.value
    }
    return rows
  }

  /// The value by which a location is sorted, from its first row that is not a priority.
  ///
  /// A location with only priority rows has lost its last child and therefore does not exist.
  func orderingValue(at path: Path) throws -> OrderingValue {
    if let known = cache?.node(at: path) { return OrderingValue(known) }
    let prefix = RowKeys.row(of: path)
    var found = OrderingValue.null
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      if key.last == RowKeys.priority { return true }
      guard key.count == prefix.count else {
        found = .object
        return false
      }
      var decoder = NodeDecoder(value)
      found = OrderingValue(try decoder.node())
      return false
    }
    return found
  }
}
