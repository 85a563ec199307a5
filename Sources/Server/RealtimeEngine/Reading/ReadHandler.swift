// Values in the sequencer: small ones are read there, large ones beside it, and so is what takes long to find out of them.

import OrderedStore
import RealtimeModel

extension BatchExecution {
  /// The value at a location, as the operation needs it.
  ///
  /// Reading much here would hold up everyone else, and so would ordering or hashing it: the operation is put off until
  /// that was done aside.
  /// - Parameters:
  ///   - query: the query whose window the operation needs; nil for all of the value.
  ///   - isHashed: whether it needs the hash of the value, or of the window.
  /// - Returns: the value, with what was prepared for the query.
  mutating func value(
    at path: Path, for operation: RealtimeOperation, _ query: QuerySpec? = nil, isHashed: Bool = false
  ) throws -> OrderedLocation {
    switch operation.largeRead {
    case .success(let read)? where read.path == path:
      guard let current = read.current(for: query) else { break }
      guard current.node.estimatedSize <= tree.limits.responseBytes else { throw RealtimeError.tooBig }
      if tree.cache?.node(at: path) == nil { tree.cache?.keep(current.node, at: path) }
      guard let query, isCostly(current.node, query, isHashed) else { return current }
      if current.index(by: query.ordering) != nil || current.view(of: query) != nil { return current }
    case .failure(.tooBig)?:
      if try awaitsIndex(query, path) { throw PutOff(reason: .index) }
      throw RealtimeError.tooBig
    case .failure(let error)? where error == LargeReading.abandoned:
      // A write is decided in any case.
      guard case .write = operation.action else { throw error }
    default: break
    }
    guard mayDefer, operation.backgroundReads < LargeReading.mostAttempts else {
      return OrderedLocation(try tree.node(at: path))
    }
    if operation.isTooLarge, try awaitsIndex(query, path) { throw PutOff(reason: .index) }
    let staging = executor.generations.limits
    guard let node = try tree.nodeIfSmall(at: path, staging) else {
      throw PutOff(reason: .reading(path, nil))
    }
    guard isCostly(node, query, isHashed), let cache = tree.cache else { return OrderedLocation(node) }
    if let read = cache.backgroundReads.idle(at: path) { throw PutOff(reason: .reading(path, read)) }
    let read = BackgroundRead(path, node)
    cache.backgroundReads.add(read)
    throw PutOff(reason: .reading(path, read))
  }

  /// Whether rows will tell what a query shows, once they are built.
  private mutating func awaitsIndex(_ query: QuerySpec?, _ path: Path) throws -> Bool {
    guard mayDefer, let query, !query.showsAll else { return false }
    return try hasIndex(query.ordering, path) && indexBuilds().concern(path)
  }

  /// Whether a query's window takes long to find in a value, or to hash; or the value, where there is no query.
  private func isCostly(_ node: Node, _ query: QuerySpec?, _ isHashed: Bool) -> Bool {
    let most = executor.generations.limits.preparedBytes
    guard node.estimatedSize > most else { return false }
    guard let query else { return isHashed }
    if query.isWide || !node.isKeyOrder(query.ordering) { return true }
    return isHashed && node.estimatedSize(of: query) > most
  }
}

extension Node {
  /// About how large the window of a query is, if its children are as large as the others.
  func estimatedSize(of query: QuerySpec) -> Int {
    guard let limit = query.limit, childCount > limit.count else { return estimatedSize }
    return estimatedSize / childCount * limit.count
  }
}

extension RealtimeOperation.Listen {
  /// Whether the whole location is shown, untagged.
  var isDefault: Bool { tag == nil && query.showsAll }

  /// Whether the client says what it holds.
  var isHashed: Bool { hash?.isEmpty == false }
}
