// Values in the sequencer: small ones are read there, large ones beside it, and so is what takes long to find out of them.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// The value at a location, as the operation needs it.
  ///
  /// Reading much here would hold up everyone else, and so would ordering or hashing it: the operation is put off until
  /// that was done aside.
  /// - Parameters:
  ///   - ordering: the order in which the operation needs the children; nil for none.
  ///   - isHashed: whether it needs the value's hash.
  /// - Returns: the value, and its children in the order if they were put into it already.
  func value(
    at path: Path, for operation: Operation, in ordering: Ordering? = nil, isHashed: Bool = false
  ) throws -> (node: Node, index: OrderedIndex?) {
    switch operation.largeRead {
    case .success(let read)? where read.path == path:
      if let current = read.current(in: ordering) {
        guard current.node.estimatedSize <= tree.limits.responseBytes else { throw RealtimeError.tooBig }
        tree.cache?.keep(current.node, at: path)
        return current
      }
    case .failure(.tooBig)?: throw RealtimeError.tooBig
    case .failure(let error)? where error == LargeReading.abandoned:
      // A write is decided in any case.
      guard case .write = operation.action else { throw error }
    default: break
    }
    guard mayHold, operation.largeReads < LargeReading.mostAttempts else {
      return (try tree.node(at: path), nil)
    }
    let staging = sequencer.generations.limits
    guard let node = try tree.nodeIfSmall(at: path, staging) else {
      throw PutOff(reason: .reading(path, nil))
    }
    let isCostly = isHashed || ordering.map { !node.isKeyOrder($0) } ?? false
    guard isCostly, node.estimatedSize > staging.preparedBytes, let cache = tree.cache else {
      return (node, nil)
    }
    let read = LargeRead(path, node)
    cache.largeReads.add(read)
    throw PutOff(reason: .reading(path, read))
  }
}

extension Operation.Listen {
  /// Whether the whole location is shown, untagged.
  var isDefault: Bool { tag == nil && query.showsAll }
}
