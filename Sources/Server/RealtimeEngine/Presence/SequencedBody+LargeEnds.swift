// Sessions whose end replaces more rows than one commit can clear. Their end takes several commits: the first settles what
// will be written (so that nothing is decided or counted twice, should the server die in between), the next ones remove
// what is in the way, piece by piece, and the last is the usual one.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// The most bytes of row keys that the end of a session clears at once.
  static let mostClearedAtOnce = 16 << 20
  /// About how many bytes of row keys one piece has.
  private static let pieceBytes = 4 << 20

  /// Puts decided values with resolved server values into the place of what a session registered.
  func settle(_ session: String) throws {
    guard let writer else { throw failure }
    let registered = try DisconnectRows(session: session, in: tree.view)
    guard !registered.isEmpty else { return }
    try writer.clear(KeyRange(prefix: RowKeys.prefix(ofSession: session)))
    // What is settled is not asked about again, and an administrator is not.
    try writer.set(RowKeys.caller(ofSession: session), CallerCoding.encode(.administrator))
    for (path, value) in try decided(registered) {
      try writer.set(RowKeys.disconnect(ofSession: session, at: path), NodeEncoder.encode(value))
    }
  }

  /// Removes a piece of what stands where a settled session is going to write; false once one commit can do the rest.
  mutating func makeRoom(for session: String) throws -> Bool {
    let registered = try DisconnectRows(session: session, in: tree.view)
    let staging = sequencer.generations.limits
    var bytes = 0
    // What is too large to be cleared at once, none of it inside another.
    var large: [Path] = []
    for (path, _) in registered.values where !path.isPriority {
      var (rows, size) = (0, 0)
      try tree.view.scan(RowKeys.range(of: path), reverse: false) { key, _, _ in
        rows += 1
        size += key.count
        return bytes + size <= SequencedBody.mostClearedAtOnce
      }
      bytes += size
      if bytes > SequencedBody.mostClearedAtOnce {
        try apply(try piece(of: path).map { (path: $0, value: .empty) })
        return true
      }
      guard rows > staging.clearedRows || size > staging.clearedBytes, large.last?.contains(path) != true
      else { continue }
      large.append(path)
      // Each takes two numbers, of its generation and of what it leaves behind.
      guard large.count >= max(1, staging.commitNumbers / 2) else { continue }
      try apply(large.sorted().map { (path: $0, value: .empty) })
      return true
    }
    return false
  }

  /// Some locations below one, whole ones, whose rows have about `pieceBytes`.
  private func piece(of path: Path) throws -> [Path] {
    let path = try commonPath(of: path)
    let prefix = RowKeys.row(of: path)
    var found: [Path] = []
    var current: [UInt8] = []
    var bytes = 0
    var isComplete = true
    try tree.view.scan(KeyRange(prefix: prefix), reverse: false) { key, _, _ in
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      // The location's own row, or its priority: they go with the location.
      guard let first = suffix.first, first != RowKeys.priority else { return true }
      let child = suffix.prefix { $0 != RowKeys.terminator }
      if !child.elementsEqual(current) {
        if !current.isEmpty { found.append(path.child(ChildKey(String(decoding: current, as: UTF8.self)))) }
        current = Array(child)
      }
      bytes += key.count
      isComplete = bytes <= SequencedBody.pieceBytes
      return isComplete
    }
    guard !current.isEmpty else { return [path] }
    let last = path.child(ChildKey(String(decoding: current, as: UTF8.self)))
    if isComplete { found.append(last) }
    // Its first child alone may be more than that.
    return found.isEmpty ? try piece(of: last) : found
  }

  /// The deepest location that holds all rows of a location which is no leaf.
  private func commonPath(of path: Path) throws -> Path {
    let prefix = RowKeys.row(of: path)
    var ends: [[ChildKey]] = []
    for reverse in [false, true] {
      try tree.view.scan(KeyRange(prefix: prefix), reverse: reverse) { key, _, _ in
        ends.append(RowKeys.keys(in: UnsafeRawBufferPointer(rebasing: key[prefix.count...])))
        return false
      }
    }
    guard ends.count == 2 else { return path }
    let shared = zip(ends[0].dropLast(), ends[1].dropLast()).prefix { $0 == $1 }.map(\.0)
    return Path(keys: path.keys + shared)
  }
}
