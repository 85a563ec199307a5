// Handles reads: values, query windows and key lists.
//
// Small values are read in the batch. If a value is large, or a result takes long to compute, the operation is
// deferred and a background job does the work. If rows are sorted in the order of a query, its window (the children
// that it shows) is read from these rows. The cost then depends on the size of the window, not of the location.

import Access
import OrderedStore
import RealtimeModel

/// Executes reads in a batch.
struct ReadHandler: BatchHandler {
  let batch: BatchExecution

  func get(_ path: Path, _ query: QuerySpec, for operation: RealtimeOperation) throws -> Node {
    try batch.authorization.mayRead(path, query, operation.caller)
    if operation.needsIndex(query), !(try batch.settings.hasIndex(query.ordering, path)) {
      throw RealtimeError.indexNotDefined(query.ordering.wireText, path: path.absolute)
    }
    return try window(query, at: path, for: operation)
  }

  func getShallow(_ path: Path, _ query: QuerySpec, _ caller: Principal) throws -> ShallowNode {
    try batch.authorization.mayRead(path, query, caller)
    if !query.showsAll, query.ordering == .key || (query.start == nil && query.end == nil),
      tree.cache?.node(at: path) == nil,
      let keys = try tree.keysInOrder(
        QuerySpec(ordering: .key, start: query.start, end: query.end, limit: query.limit), at: path)
    {
      return keys.isEmpty ? .empty : .children(keys)
    }
    return try tree.shallow(at: path).window(query)
  }

  /// Counts the values that a write would add or replace, up to `maximum`. Fails if the caller may not
  /// perform the write. The count reveals stored data even if the condition of the write then fails. A conditional
  /// write therefore needs permission to read first.
  func estimate(
    _ write: RealtimeWrite, isConditional: Bool, atMost maximum: Int, for operation: RealtimeOperation
  ) throws -> Int {
    let submitted = try WriteRequest(
      write, limits: limits, bytes: limits.restWriteBytes, allowsEmptyPaths: true)
    if isConditional {
      for change in submitted.changes {
        try batch.authorization.mayRead(change.path, .default, operation.caller)
      }
    }
    let request = try batch.writes.authorized(submitted, of: operation, write.accessOperation)
    var count = 0
    for change in request.changes where count < maximum {
      count += change.value.leafCount
      try tree.view.scan(RowKeys.range(of: change.path.dataPath), reverse: false) { _, _, _ in
        count += 1
        return count < maximum
      }
    }
    return min(count, maximum)
  }

  // MARK: Values

  /// The value at a location, prepared for the operation.
  ///
  /// - Parameters:
  ///   - query: the query whose window the operation needs; nil for the complete value.
  ///   - isHashed: whether the operation needs the hash of the value, or of the window.
  /// - Throws: ``Deferral`` if a large value has to be read, sorted or hashed first.
  func value(
    at path: Path, for operation: RealtimeOperation, _ query: QuerySpec? = nil, isHashed: Bool = false
  ) throws -> OrderedLocation {
    switch operation.results.location {
    case .success(let read)? where read.path == path:
      guard let current = read.current(for: query) else { break }
      guard current.node.estimatedSize <= tree.limits.responseBytes else { throw RealtimeError.tooBig }
      if tree.cache?.node(at: path) == nil { tree.cache?.insert(current.node, at: path) }
      guard let query, isCostly(current.node, query, isHashed) else { return current }
      if current.index(by: query.ordering) != nil || current.view(of: query) != nil { return current }
    case .failure(.tooBig)?:
      if try awaitsIndex(query, path) { throw Deferral.indexBuild }
      throw RealtimeError.tooBig
    case .failure(let error)? where error == .abandoned:
      // A read of a closed connection fails. Its writes are still executed, so the value for a write is read below.
      guard case .write = operation.action else { throw error }
    default: break
    }
    guard batch.mayDefer, operation.results.locationReadCount < LocationRead.maximumAttempts else {
      return OrderedLocation(try tree.node(at: path))
    }
    if operation.results.hasAwaitedIndex, try awaitsIndex(query, path) { throw Deferral.indexBuild }
    guard let node = try tree.nodeIfSmall(at: path, staging) else {
      throw Deferral.location(LocationRead(path: path, availableRead: nil))
    }
    guard isCostly(node, query, isHashed), let cache = tree.cache else { return OrderedLocation(node) }
    if let read = cache.observers.idleRead(at: path) {
      throw Deferral.location(LocationRead(path: path, availableRead: read))
    }
    let read = BackgroundRead(path, node)
    cache.observers.add(read)
    throw Deferral.location(LocationRead(path: path, availableRead: read))
  }

  /// Whether an index of the query is being built. Once it is complete, the window can be read from its rows.
  private func awaitsIndex(_ query: QuerySpec?, _ path: Path) throws -> Bool {
    guard batch.mayDefer, let query, !query.showsAll else { return false }
    return try batch.settings.hasIndex(query.ordering, path) && batch.indexes.builds().mayAffect(path)
  }

  /// Whether the window of a query takes long to find in a value, or to hash. Without a query: whether the
  /// value takes long to hash.
  private func isCostly(_ node: Node, _ query: QuerySpec?, _ isHashed: Bool) -> Bool {
    let maximum = staging.preparedBytes
    guard node.estimatedSize > maximum else { return false }
    guard let query else { return isHashed }
    if query.isWide || !node.isKeyOrder(query.ordering) { return true }
    return isHashed && node.estimatedSize(of: query) > maximum
  }

  // MARK: Windows

  /// The window of a query.
  ///
  /// Reads outside connections run off the sequencer, and therefore read even a wide window immediately.
  /// - Throws: ``Deferral`` if a connection's window is too wide to be read in the batch.
  private func window(_ query: QuerySpec, at path: Path, for operation: RealtimeOperation) throws -> Node {
    if let read = operation.results.window { return try read.get() }
    let isBounded = batch.mayDefer && operation.connection != nil
    if !query.showsAll,
      let keys = try windowKeys(isBounded ? query.limited(to: staging.readRows + 1) : query, at: path)
    {
      if !isBounded { return try window(keys, at: path) }
      guard keys.count <= staging.readRows, let window = try windowIfSmall(keys, at: path) else {
        throw Deferral.window(WindowRead(path: path, query: query, caller: operation.caller))
      }
      return window
    }
    let value = try value(at: path, for: operation, query.showsAll ? nil : query)
    if query.showsAll { return value.node }
    return value.view(of: query)?.content ?? value.index(by: query.ordering)?.window(query).content
      ?? value.node.window(query)
  }

  /// The keys of a window, read from rows. Returns nil if the value is in memory in the query's order, or no
  /// rows have that order.
  private func windowKeys(_ query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    let isByKey = query.ordering == .key || query.ordering == .priority
    if isByKey, tree.cache?.node(at: path) != nil { return nil }
    return try keysByRows(query, at: path)
  }

  /// The keys of a window, read from rows. Returns nil if no rows have the query's order, or their index is
  /// incomplete.
  func keysByRows(_ query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    switch query.ordering {
    case .key: return try tree.keysInOrder(query, at: path)
    case .priority: return try tree.hasNoPriorities(at: path) ? tree.keysInOrder(query, at: path) : nil
    case .value, .child:
      guard try batch.settings.hasIndex(query.ordering, path), try !batch.indexes.builds().mayAffect(path)
      else { return nil }
      return try tree.indexedKeys(query, at: path)
    }
  }

  private func window(_ keys: [ChildKey], at path: Path) throws -> Node {
    var size = 0
    var children: [(ChildKey, Node)] = []
    for key in keys {
      let child = try tree.node(at: path.child(key))
      size += child.estimatedSize + key.text.utf8.count + 4
      guard size <= limits.responseBytes else { throw RealtimeError.tooBig }
      children.append((key, child))
    }
    return .object(children)
  }

  /// The children of a window; nil if too many bytes would have to be read from rows.
  private func windowIfSmall(_ keys: [ChildKey], at path: Path) throws -> Node? {
    var remaining = staging
    var size = 0
    var children: [(ChildKey, Node)] = []
    for key in keys {
      let isCached = tree.cache?.node(at: path.child(key)) != nil
      guard let child = try tree.nodeIfSmall(at: path.child(key), remaining) else { return nil }
      size += child.estimatedSize + key.text.utf8.count + 4
      guard size <= limits.responseBytes else { throw RealtimeError.tooBig }
      if !isCached { remaining.readBytes -= child.estimatedSize }
      guard remaining.readBytes >= 0 else { return nil }
      children.append((key, child))
    }
    return .object(children)
  }
}

extension RealtimeOperation {
  /// Whether a single read fails if the query's order has no index. Reads of a complete location by
  /// connections never fail for this reason, because SDKs request them with any order.
  fileprivate func needsIndex(_ query: QuerySpec) -> Bool { connection == nil || !query.showsAll }
}

extension QuerySpec {
  /// The query with a limit of at most `maximum` children.
  fileprivate func limited(to maximum: Int) -> QuerySpec {
    guard limit.map({ $0.count > maximum }) ?? true else { return self }
    var query = self
    if case .last = limit { query.limit = .last(maximum) } else { query.limit = .first(maximum) }
    return query
  }
}

extension Node {
  /// The estimated bytes of a query's window, for children of average size.
  func estimatedSize(of query: QuerySpec) -> Int {
    guard let limit = query.limit, childCount > limit.count else { return estimatedSize }
    return estimatedSize / childCount * limit.count
  }

  /// Number of leaves of the value.
  fileprivate var leafCount: Int {
    guard case .children = content else { return isEmpty ? 0 : 1 }
    var count = 0
    forEachChild { _, child in
      count += child.leafCount
      return true
    }
    return count
  }
}
