// Builds a node from the rows of a location, which must be added in the byte order of their keys.
//
// Invariant: the frames are the objects on the path to the last row.

import JSON
import RealtimeModel

/// Builds a node from rows.
struct NodeBuilder {
  private struct Frame {
    let key: ArraySlice<UInt8>
    var children: [(ChildKey, Node)] = []
    var priority: Priority?
  }

  private var frames = [Frame(key: [])]
  private var leaf: Node?

  /// Adds a row.
  ///
  /// - Parameter path: the row's path relative to the location.
  /// - Throws: `CacheFailure` if the row is damaged.
  mutating func add(_ path: [UInt8], _ value: UnsafeRawBufferPointer) throws {
    let node = try NodeBuilder.node(value)
    guard !path.isEmpty else {
      leaf = node
      return
    }
    guard path.last == 0 else { throw CacheFailure.damaged("a row has an incomplete path") }
    let keys = path.dropLast().split(separator: 0, omittingEmptySubsequences: false)
    guard keys.count <= RowPath.maximumLevels else {
      throw CacheFailure.damaged("a row has a path of \(keys.count) levels")
    }
    var depth = 0
    while depth + 1 < frames.count, depth < keys.count - 1, frames[depth + 1].key == keys[depth] {
      depth += 1
    }
    try close(downTo: depth)
    for key in keys[depth..<(keys.count - 1)] { frames.append(Frame(key: key)) }
    let key = try NodeBuilder.key(keys[keys.count - 1])
    if key.isPriority {
      frames[frames.count - 1].priority = node.leafValue.flatMap { try? Priority($0) }
    } else {
      frames[frames.count - 1].children.append((key, node))
    }
  }

  /// The node of all rows.
  mutating func finish() throws -> Node {
    try close(downTo: 0)
    let object = Node.object(frames[0].children, priority: frames[0].priority)
    return object.isEmpty ? leaf ?? .empty : object
  }

  private mutating func close(downTo depth: Int) throws {
    while frames.count > depth + 1 {
      let frame = frames.removeLast()
      let node = Node.object(frame.children, priority: frame.priority)
      frames[frames.count - 1].children.append((try NodeBuilder.key(frame.key), node))
    }
  }

  private static func key(_ bytes: ArraySlice<UInt8>) throws -> ChildKey {
    let keys = try RowPath.decode(bytes + [0])
    guard keys.count == 1 else { throw CacheFailure.damaged("a row has an invalid path") }
    return keys[0]
  }

  /// The limits of stored JSON. The standard depth exceeds the depth of every accepted write. The size is
  /// unlimited, because a row is already in memory.
  static let limits = JSONLimits(bytes: .max)

  /// Parses a stored value.
  ///
  /// - Throws: `CacheFailure` if the bytes are not the JSON of a value.
  static func node(_ bytes: UnsafeRawBufferPointer) throws -> Node {
    do {
      var reader = try JSONReader(unsafeBytes: bytes, limits: limits)
      let node = try reader.readNode(.read)
      try reader.finish()
      return node
    } catch {
      throw CacheFailure.damaged("a value is not JSON")
    }
  }
}
