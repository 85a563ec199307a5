// Reads the window of a query by index rows, or by the rows themselves where their order is the query's: what it costs is
// the window, not the location.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// What a query shows of a location.
  ///
  /// Reading a wide window here would hold up everyone else: a connection's operation is put off until that was done aside.
  /// Calls outside connections read beside the sequencer anyway.
  mutating func window(_ query: QuerySpec, at path: Path, for operation: Operation) throws -> Node {
    if let read = operation.window { return try read.get() }
    let isBounded = mayHold && operation.connection != nil
    let staging = sequencer.generations.limits
    if !query.showsAll,
      let keys = try keys(isBounded ? query.limited(to: staging.readRows + 1) : query, at: path)
    {
      if !isBounded { return try window(keys, at: path) }
      guard keys.count <= staging.readRows, let window = try windowIfSmall(keys, at: path, staging) else {
        throw PutOff(reason: .window(path, query, operation.caller))
      }
      return window
    }
    let value = try value(at: path, for: operation, query.showsAll ? nil : query)
    if query.showsAll { return value.node }
    return value.view(of: query)?.content ?? value.index(by: query.ordering)?.window(query).content
      ?? value.node.window(query)
  }

  /// What a query shows of a location's keys.
  func shallow(_ query: QuerySpec, at path: Path) throws -> ShallowNode {
    if !query.showsAll, query.ordering == .key || (query.start == nil && query.end == nil),
      tree.cache?.node(at: path) == nil,
      let keys = try tree.keysInOrder(
        QuerySpec(ordering: .key, start: query.start, end: query.end, limit: query.limit), at: path)
    {
      return keys.isEmpty ? .empty : .children(keys)
    }
    return try tree.shallow(at: path).window(query)
  }

  /// The keys of a window by rows, unless they are no help: what is in memory is in the order of keys already.
  private mutating func keys(_ query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    let isByKey = query.ordering == .key || query.ordering == .priority
    if isByKey, tree.cache?.node(at: path) != nil { return nil }
    return try keysByRows(query, at: path)
  }

  /// The keys of a window by rows; nil where there are none in its order, or none that say enough.
  mutating func keysByRows(_ query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    switch query.ordering {
    case .key: return try tree.keysInOrder(query, at: path)
    case .priority: return try hasNoPriorities(at: path) ? tree.keysInOrder(query, at: path) : nil
    case .value, .child:
      guard try hasIndex(query.ordering, path), try !indexBuilds().concern(path) else { return nil }
      return try tree.indexedKeys(query, at: path)
    }
  }

  private func window(_ keys: [ChildKey], at path: Path) throws -> Node {
    var size = 0
    var children: [(ChildKey, Node)] = []
    for key in keys {
      let child = try tree.node(at: path.child(key))
      size += child.estimatedSize + key.text.utf8.count + 4
      guard size <= sequencer.limits.responseBytes else { throw RealtimeError.tooBig }
      children.append((key, child))
    }
    return .object(children)
  }

  /// The same, if what of it is not in memory is little to read; else nil.
  private func windowIfSmall(_ keys: [ChildKey], at path: Path, _ staging: StagingLimits) throws -> Node? {
    var left = staging
    var size = 0
    var children: [(ChildKey, Node)] = []
    for key in keys {
      let isKnown = tree.cache?.node(at: path.child(key)) != nil
      guard let child = try tree.nodeIfSmall(at: path.child(key), left) else { return nil }
      size += child.estimatedSize + key.text.utf8.count + 4
      guard size <= sequencer.limits.responseBytes else { throw RealtimeError.tooBig }
      if !isKnown { left.readBytes -= child.estimatedSize }
      guard left.readBytes >= 0 else { return nil }
      children.append((key, child))
    }
    return .object(children)
  }
}

extension QuerySpec {
  /// The same with a limit of at most so many.
  fileprivate func limited(to most: Int) -> QuerySpec {
    guard limit.map({ $0.count > most }) ?? true else { return self }
    var query = self
    if case .last = limit { query.limit = .last(most) } else { query.limit = .first(most) }
    return query
  }
}

extension Tree {
  /// The keys of the children in a query's window, by their index rows; nil if the rows do not say enough.
  func indexedKeys(_ query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    let prefix = IndexRows.prefix(of: path, by: query.ordering)
    var range = KeyRange(prefix: prefix)
    if let start = query.start, let place = query.startSortKey {
      guard let bytes = IndexRows.bound(place) else { return nil }
      range.start = prefix + bytes + (start.isInclusive ? [] : [0x00])
    }
    if let end = query.end, let place = query.endSortKey {
      guard let bytes = IndexRows.bound(place) else { return nil }
      range.end = prefix + bytes + (end.isInclusive ? [0x00] : [])
    }
    guard range.end.map({ !$0.lexicographicallyPrecedes(range.start) }) ?? true else { return [] }
    var reverse = false
    if case .last = query.limit { reverse = true }
    let limit = query.limit?.count ?? .max
    var keys: [ChildKey] = []
    var isCut = false
    try view.scan(range, reverse: reverse) { _, value, _ in
      guard let mark = value.first, mark == 0x00 else {
        isCut = true
        return false
      }
      keys.append(ChildKey(String(decoding: UnsafeRawBufferPointer(rebasing: value[1...]), as: UTF8.self)))
      return keys.count < limit
    }
    return isCut ? nil : keys
  }
}
