// Validates a write against the limits of the data model, sorts its changes, and resolves its server values.

import RealtimeModel

/// The validated changes of a write, in ascending order of paths, none inside another.
struct WriteRequest {
  private(set) var changes: [(path: Path, value: Node)]

  /// Validates a write.
  ///
  /// - Parameters:
  ///   - bytes: the maximum bytes of JSON.
  ///   - allowsEmptyPaths: whether an update may contain an empty relative path, which names the updated
  ///     location itself. Clients may not send it, because such an update would replace the complete value.
  /// - Throws: ``RealtimeError`` with status `failure` or `write_too_big`.
  init(
    _ write: RealtimeWrite, limits: RealtimeLimits, bytes: Int, allowsEmptyPaths: Bool = false
  ) throws(RealtimeError) {
    switch write {
    case .set(let path, let node): changes = [(path, node)]
    case .update(let path, let relative):
      guard !path.isPriority || relative.isEmpty else { throw .invalidPath }
      guard allowsEmptyPaths || relative.allSatisfy({ !$0.0.isRoot }) else { throw WriteRequest.invalidKey }
      changes = relative.map { (path.appending($0.0), $0.1) }
    }
    changes.sort { $0.path < $1.path }
    var size = 0
    for (position, change) in changes.enumerated() {
      try WriteRequest.check(change.path, change.value, limits)
      size += change.value.estimatedSize
      if position > 0, changes[position - 1].path.contains(change.path) {
        throw RealtimeError(
          .failure,
          "Invalid data; path \(changes[position - 1].path.absolute) is an ancestor of another path in the same update: \(change.path.absolute)"
        )
      }
    }
    guard size <= bytes else { throw .writeTooBig }
  }

  private static func check(_ path: Path, _ value: Node, _ limits: RealtimeLimits) throws(RealtimeError) {
    guard path.dataDepth <= limits.depth else { throw tooDeep(limits) }
    for (position, key) in path.keys.enumerated() {
      if key.isPriority, position == path.count - 1 { continue }
      guard ChildKey.isValid(key.text) else { throw .invalidPath }
      guard key.text.utf8.count <= limits.keyBytes else { throw keyTooLong(limits) }
    }
    if path.isPriority {
      guard value.isEmpty || value.isLeaf, value.priority == nil else {
        throw .invalidData("priority must be null, a number or a string")
      }
      if let leaf = value.leafValue { _ = try Priority(leaf) }
    }
    try check(value, depth: path.dataDepth, bytes: path.keyBytes, limits)
  }

  /// - Parameter bytes: the bytes of the path to the node.
  private static func check(
    _ node: Node, depth: Int, bytes: Int, _ limits: RealtimeLimits
  ) throws(RealtimeError) {
    guard depth <= limits.depth else { throw tooDeep(limits) }
    guard bytes <= RealtimeLimits.pathBytes else {
      throw .invalidData("the path to a value is longer than \(RealtimeLimits.pathBytes) bytes")
    }
    switch node.content {
    case .empty: return
    case .leaf(.string(let text)):
      guard text.utf8.count <= limits.stringBytes else {
        throw .invalidData("string longer than \(limits.stringBytes) bytes of UTF-8")
      }
    case .leaf(.double(let number)):
      guard number.isFinite else { throw .invalidData("number is not finite") }
    case .leaf: break
    case .children:
      var failure: RealtimeError?
      node.forEachChild { key, child in
        do throws(RealtimeError) {
          guard ChildKey.isValid(key.text) else { throw invalidKey }
          guard key.text.utf8.count <= limits.keyBytes else { throw keyTooLong(limits) }
          try check(child, depth: depth + 1, bytes: bytes + key.text.utf8.count + 1, limits)
        } catch { failure = error }
        return failure == nil
      }
      if let failure { throw failure }
    }
    if case .number(let number)? = node.priority, !number.isFinite {
      throw .invalidData("priority is not finite")
    }
  }

  private static let invalidKey = RealtimeError.invalidData(
    "couldn't parse key. Key value can't be empty or contain $ # [ ] / or .")

  private static func tooDeep(_ limits: RealtimeLimits) -> RealtimeError {
    .invalidData("data lies more than \(limits.depth) levels deep")
  }

  private static func keyTooLong(_ limits: RealtimeLimits) -> RealtimeError {
    .invalidData("key longer than \(limits.keyBytes) bytes")
  }

  /// Whether a server value of the write is computed from stored data.
  var dependsOnStoredData: Bool {
    changes.contains { $0.value.containsDeferred && $0.value.containsIncrement }
  }

  /// Replaces server values by the values that the server computes from the tree before the write.
  ///
  /// - Returns: the error of the write if the result of an increment is not finite; its value is then 0.
  /// - Throws: errors of the store.
  mutating func resolve(in tree: Tree, now: Int64) throws -> RealtimeError? {
    var failure: RealtimeError?
    for i in changes.indices where changes[i].value.containsDeferred {
      changes[i].value = try WriteRequest.resolve(
        changes[i].value, at: changes[i].path, in: tree, now: now, &failure)
    }
    return failure
  }

  private static func resolve(
    _ node: Node, at path: Path, in tree: Tree, now: Int64, _ failure: inout RealtimeError?
  ) throws -> Node {
    guard node.containsDeferred else { return node }
    var priority = node.priority
    if case .deferred(let value)? = priority {
      priority = try Priority(try resolve(value, at: path.child(.priority), in: tree, now: now, &failure))
    }
    switch node.content {
    case .empty: return node
    case .leaf(.deferred(let value)):
      return .leaf(try resolve(value, at: path, in: tree, now: now, &failure), priority: priority)
    case .leaf(let value): return .leaf(value, priority: priority)
    case .children:
      var children: [(ChildKey, Node)] = []
      children.reserveCapacity(node.childCount)
      try node.forEachChild { key, child in
        children.append((key, try resolve(child, at: path.child(key), in: tree, now: now, &failure)))
        return true
      }
      return .object(children, priority: priority)
    }
  }

  private static func resolve(
    _ value: ServerValue, at path: Path, in tree: Tree, now: Int64, _ failure: inout RealtimeError?
  ) throws -> LeafValue {
    guard case .increment = value else { return value.resolved(existing: .empty, timestamp: now) }
    let resolved = value.resolved(existing: try tree.leaf(at: path), timestamp: now)
    guard let number = resolved.number, number.doubleValue.isFinite else {
      failure = .invalidData("number is not finite")
      return .int(0)
    }
    return resolved
  }
}

extension Node {
  /// Whether the node contains an increment. Visits only parts with server values.
  fileprivate var containsIncrement: Bool {
    if case .deferred(.increment)? = priority { return true }
    switch content {
    case .leaf(.deferred(.increment)): return true
    case .empty, .leaf: return false
    case .children:
      return !forEachChild { _, child in !(child.containsDeferred && child.containsIncrement) }
    }
  }
}
