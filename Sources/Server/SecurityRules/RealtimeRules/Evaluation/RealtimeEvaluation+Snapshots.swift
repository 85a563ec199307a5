// Evaluates the methods of snapshots. A method reads at most the location of its snapshot, and the locations that its
// arguments name.

import Access
import RealtimeModel

extension RealtimeEvaluation {
  private mutating func content(of snapshot: RealtimeSnapshot) throws -> Node.Content {
    guard let path = snapshot.path else { return .empty }
    return try content(at: path, snapshot.state)
  }

  private mutating func exists(_ snapshot: RealtimeSnapshot) throws -> Bool {
    if case .empty = try content(of: snapshot) { return false }
    return true
  }

  private mutating func leaf(of snapshot: RealtimeSnapshot) throws -> LeafValue? {
    if case .leaf(let value) = try content(of: snapshot) { return value }
    return nil
  }

  mutating func call(
    _ method: RealtimeSnapshotMethod, _ snapshot: RealtimeSnapshot, _ arguments: [RealtimeTerm]
  ) throws -> RealtimeValue {
    switch method {
    case .val:
      switch try content(of: snapshot) {
      case .empty: return .null
      case .leaf(let value): return RealtimeValue(value)
      case .children: return .object
      }
    case .exists: return .bool(try exists(snapshot))
    case .getPriority:
      guard let path = snapshot.path else { return .null }
      try spend(RealtimeBudget.stepsPerRead)
      recordRead(of: path)
      return RealtimeValue(try view.priority(at: path, snapshot.state)?.leafValue)
    case .isNumber: return .bool(try leaf(of: snapshot)?.number != nil)
    case .isString:
      if case .string? = try leaf(of: snapshot) { return .bool(true) }
      return .bool(false)
    case .isBoolean:
      if case .bool? = try leaf(of: snapshot) { return .bool(true) }
      return .bool(false)
    case .parent:
      guard let parent = snapshot.path?.parent else { throw RealtimeFailure.noParent }
      return .snapshot(RealtimeSnapshot(path: parent, state: snapshot.state))
    case .child: return .snapshot(try child(of: snapshot, try first(arguments)))
    case .hasChild: return .bool(try exists(try child(of: snapshot, try first(arguments))))
    case .hasChildren:
      guard !arguments.isEmpty else {
        if case .children = try content(of: snapshot) { return .bool(true) }
        return .bool(false)
      }
      // All arguments are evaluated before the first child is read, so that a wrong type always fails.
      var children: [RealtimeSnapshot] = []
      for argument in arguments { children.append(try child(of: snapshot, argument)) }
      for child in children where !(try exists(child)) { return .bool(false) }
      return .bool(true)
    }
  }

  private func first(_ arguments: [RealtimeTerm]) throws -> RealtimeTerm {
    guard let argument = arguments.first else {
      preconditionFailure("invariant: a checked call has its arguments")
    }
    return argument
  }

  /// The snapshot at a path below another one.
  private mutating func child(
    of snapshot: RealtimeSnapshot, _ argument: RealtimeTerm
  ) throws -> RealtimeSnapshot {
    let text = try text(try evaluate(argument), "child")
    try spend(text.utf8.count / RealtimeBudget.bytesPerStep)
    return snapshot.child(text)
  }
}

extension RealtimeSnapshot {
  /// The snapshot at a relative path. If the path is empty, too long, or has characters that keys cannot have, it names
  /// no location, and the snapshot has no value.
  func child(_ text: String) -> RealtimeSnapshot {
    let absent = RealtimeSnapshot(path: nil, state: state)
    guard let base = self.path, text.utf8.count <= RealtimeLimits.pathBytes else { return absent }
    let path: Path
    if ChildKey.isValid(text) {
      path = base.child(ChildKey(text))
    } else {
      let relative = Path(text)
      guard !relative.isRoot, relative.keys.allSatisfy({ ChildKey.isValid($0.text) }) else { return absent }
      path = base.appending(relative)
    }
    guard path.keyBytes <= RealtimeLimits.pathBytes else { return absent }
    return RealtimeSnapshot(path: path, state: state)
  }
}
