// Values in the sequencer: small ones are read there, large ones beside it, and so is what takes long to find out of them.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// The value at a location, as the operation needs it.
  ///
  /// Reading much here would hold up everyone else, and so would ordering or hashing it: the operation is put off until
  /// that was done aside.
  /// - Parameters:
  ///   - query: the query whose window the operation needs; nil for all of the value.
  ///   - isHashed: whether it needs the value's hash.
  /// - Returns: the value, with what was prepared for the query.
  func value(
    at path: Path, for operation: Operation, _ query: QuerySpec? = nil, isHashed: Bool = false
  ) throws -> OrderedLocation {
    switch operation.largeRead {
    case .success(let read)? where read.path == path:
      guard let current = read.current(for: query) else { break }
      guard current.node.estimatedSize <= tree.limits.responseBytes else { throw RealtimeError.tooBig }
      if tree.cache?.node(at: path) == nil { tree.cache?.keep(current.node, at: path) }
      if query.map({ !isCostly(current.node, $0) || current.index(by: $0.ordering) != nil }) ?? true {
        return current
      }
    case .failure(.tooBig)?: throw RealtimeError.tooBig
    case .failure(let error)? where error == LargeReading.abandoned:
      // A write is decided in any case.
      guard case .write = operation.action else { throw error }
    default: break
    }
    guard mayHold, operation.largeReads < LargeReading.mostAttempts else {
      return OrderedLocation(try tree.node(at: path))
    }
    let staging = sequencer.generations.limits
    guard let node = try tree.nodeIfSmall(at: path, staging) else {
      throw PutOff(reason: .reading(path, nil))
    }
    guard query.map({ isCostly(node, $0) }) ?? isHashed, node.estimatedSize > staging.preparedBytes,
      let cache = tree.cache
    else { return OrderedLocation(node) }
    if let read = cache.largeReads.idle(at: path) { throw PutOff(reason: .reading(path, read)) }
    let read = LargeRead(path, node)
    cache.largeReads.add(read)
    throw PutOff(reason: .reading(path, read))
  }

  /// Whether a query's window takes long to find in a value.
  private func isCostly(_ node: Node, _ query: QuerySpec) -> Bool {
    node.estimatedSize > sequencer.generations.limits.preparedBytes
      && (query.isWide || !node.isKeyOrder(query.ordering))
  }
}

extension Operation.Listen {
  /// Whether the whole location is shown, untagged.
  var isDefault: Bool { tag == nil && query.showsAll }
}
