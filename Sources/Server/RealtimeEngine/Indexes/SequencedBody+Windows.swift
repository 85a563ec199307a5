// Reads the window of a query by index rows: what it costs is the window, not the location.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// What a query shows of a location.
  mutating func window(_ query: QuerySpec, at path: Path) throws -> Node {
    if !query.showsAll, let window = try indexedWindow(query, at: path) { return window }
    return try tree.node(at: path).window(query)
  }

  /// The window by index rows; nil where there are none, or none that say enough.
  private mutating func indexedWindow(_ query: QuerySpec, at path: Path) throws -> Node? {
    switch query.ordering {
    case .key, .priority: return nil
    case .value, .child: break
    }
    guard try hasIndex(query.ordering, path), try !indexBuilds().concern(path),
      let keys = try tree.indexedKeys(query, at: path)
    else { return nil }
    var size = 0
    var children: [(Key, Node)] = []
    for key in keys {
      let child = try tree.node(at: path.child(key))
      size += child.estimatedSize + key.text.utf8.count + 4
      guard size <= sequencer.limits.responseBytes else { throw RealtimeError.tooBig }
      children.append((key, child))
    }
    return .object(children)
  }
}

extension Tree {
  /// The keys of the children in a query's window, by their index rows; nil if the rows do not say enough.
  func indexedKeys(_ query: QuerySpec, at path: Path) throws -> [Key]? {
    let prefix = IndexRows.prefix(of: path, by: query.ordering)
    var range = KeyRange(prefix: prefix)
    if let start = query.start, let place = query.startPlace {
      guard let bytes = IndexRows.bound(place) else { return nil }
      range.start = prefix + bytes + (start.isInclusive ? [] : [0x00])
    }
    if let end = query.end, let place = query.endPlace {
      guard let bytes = IndexRows.bound(place) else { return nil }
      range.end = prefix + bytes + (end.isInclusive ? [0x00] : [])
    }
    guard range.end.map({ !$0.lexicographicallyPrecedes(range.start) }) ?? true else { return [] }
    var reverse = false
    if case .last = query.limit { reverse = true }
    let limit = query.limit?.count ?? .max
    var keys: [Key] = []
    var isCut = false
    try view.scan(range, reverse: reverse) { _, value, _ in
      guard let mark = value.first, mark == 0x00 else {
        isCut = true
        return false
      }
      keys.append(Key(String(decoding: UnsafeRawBufferPointer(rebasing: value[1...]), as: UTF8.self)))
      return keys.count < limit
    }
    return isCut ? nil : keys
  }
}
