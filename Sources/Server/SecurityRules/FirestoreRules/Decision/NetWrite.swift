// Combines the writes of one document in a commit, so that rules decide once about their net effect, as in Google's
// emulator: `resource` is the state before the commit and `request.resource` the state after it.

import FirestoreModel

/// The net effect of a commit on one document.
struct NetWrite {
  let path: ResourcePath
  private var first: RuleWrite
  private var last: RuleWrite

  /// The net effects, in the order of each document's first write.
  static func combine(_ writes: [RuleWrite]) -> [NetWrite] {
    var changes: [NetWrite] = []
    var indices: [ResourcePath: Int] = [:]
    for write in writes {
      if let index = indices[write.path] {
        changes[index].add(write)
      } else {
        indices[write.path] = changes.count
        changes.append(NetWrite(path: write.path, first: write, last: write))
      }
    }
    return changes
  }

  private mutating func add(_ write: RuleWrite) {
    if write.kind == .verify { return }
    if first.kind == .verify { first = write }
    last = write
  }

  /// Whether a precondition determines the method.
  var isConditional: Bool { first.requiresExistence != nil }

  /// The method that the net effect needs.
  func method(existsBefore: Bool) -> RuleMethod {
    switch last.kind {
    case .verify: return .get
    case .delete: return .delete
    case .set: break
    }
    // After a delete, a set in the same commit counts as an update.
    if first.kind == .delete { return .update }
    if let requiresExistence = first.requiresExistence { return requiresExistence ? .update : .create }
    return existsBefore ? .update : .create
  }
}
