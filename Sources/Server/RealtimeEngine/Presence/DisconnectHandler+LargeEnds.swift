// Ends sessions whose onDisconnect writes replace more rows than one commit can clear.
//
// Such an end takes several commits. The first stores the final values: it checks access and resolves server
// values, so that these steps happen only once even if the server stops later. The next commits remove existing rows
// in chunks. The last commit performs the writes, like the end of any other session.

import Access
import OrderedStore
import RealtimeModel

extension DisconnectHandler {
  /// Maximum bytes of row keys that the last commit of a session clears.
  static let maximumClearedBytes = 16 << 20
  /// Approximate bytes of row keys in one chunk.
  private static let chunkBytes = 4 << 20

  /// Replaces a session's registered values by those that are permitted, with resolved server values.
  func storePermittedValues(of session: String) throws {
    let writer = try batch.requireWriter()
    let registered = try registeredRows(of: session)
    guard !registered.isEmpty else { return }
    try writer.clear(KeyRange(prefix: RowKeys.prefix(ofSession: session)))
    // The access policy has decided these values. The administrator is stored as their caller, so that they are not
    // decided again.
    try writer.set(RowKeys.caller(ofSession: session), PrincipalCoding.encode(.administrator))
    for (path, value) in try permittedValues(of: registered) {
      try writer.set(RowKeys.disconnect(ofSession: session, at: path), NodeEncoder.encode(value))
    }
  }

  /// Removes a chunk of the existing values that the session's writes will replace.
  ///
  /// - Returns: false once one commit can clear the remaining rows.
  func clearChunk(for session: String) throws -> Bool {
    let registered = try DisconnectRows(session: session, in: tree.view)
    var bytes = 0
    // Locations with too many rows to be cleared by the commit itself, none inside another.
    var large: [Path] = []
    for (path, _) in registered.values where !path.isPriority {
      var (rows, size) = (0, 0)
      try tree.view.scan(RowKeys.range(of: path), reverse: false) { key, _, _ in
        rows += 1
        size += key.count
        return bytes + size <= DisconnectHandler.maximumClearedBytes
      }
      bytes += size
      if bytes > DisconnectHandler.maximumClearedBytes {
        try batch.writes.apply(try chunk(of: path).map { (path: $0, value: .empty) })
        return true
      }
      guard rows > staging.clearedRows || size > staging.clearedBytes, large.last?.contains(path) != true
      else { continue }
      large.append(path)
      // Clearing each of these locations takes two of the numbers that a commit can assign: one for the location's new,
      // empty generation, and one for the record by which the cleaner later clears the old rows.
      guard large.count >= max(1, staging.maximumNumbersPerCommit / 2) else { continue }
      try batch.writes.apply(large.sorted().map { (path: $0, value: .empty) })
      return true
    }
    return false
  }

  /// Complete locations at or below a path, whose row keys have about `chunkBytes` in total.
  private func chunk(of path: Path) throws -> [Path] {
    let path = try commonPath(of: path)
    let prefix = RowKeys.row(of: path)
    var found: [Path] = []
    var current: [UInt8] = []
    var bytes = 0
    var isComplete = true
    try tree.view.scan(KeyRange(prefix: prefix), reverse: false) { key, _, _ in
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      // Rows of the location itself, a leaf or a priority, are not rows of a child.
      guard let first = suffix.first, first != RowKeys.priority else { return true }
      let child = suffix.prefix { $0 != RowKeys.terminator }
      if !child.elementsEqual(current) {
        if !current.isEmpty { found.append(path.child(ChildKey(String(decoding: current, as: UTF8.self)))) }
        current = Array(child)
      }
      bytes += key.count
      isComplete = bytes <= DisconnectHandler.chunkBytes
      return isComplete
    }
    guard !current.isEmpty else { return [path] }
    let last = path.child(ChildKey(String(decoding: current, as: UTF8.self)))
    if isComplete { found.append(last) }
    // If the first child alone exceeds the chunk, only a part of that child is taken.
    return found.isEmpty ? try chunk(of: last) : found
  }

  /// The deepest location that contains all rows of the given location.
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
