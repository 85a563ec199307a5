// An untagged push is encoded once for all its subscribers. Each client assigns its own tags to its filtered queries.
// Therefore the tag comes last in the message, and all subscribers share the bytes before it.

import JSON
public import RealtimeModel

/// An encoded push, without the tag of the query that receives it.
public struct UntaggedPush: Sendable {
  /// The message up to the tag.
  public let bytes: [UInt8]

  /// Encodes a push that sets the value at a path to `data`.
  public init(data: Node, at path: Path) {
    self.init("d", path, capacity: data.estimatedSize) { $0.node(data) }
  }

  /// Encodes a push that sets the values at paths below a path.
  public init(merge children: [(Path, Node)], at path: Path) {
    self.init("m", path, capacity: children.reduce(0) { $0 + 32 + $1.1.estimatedSize }) { writer in
      writer.children(children)
    }
  }

  /// Encodes a push that replaces ranges of the value at a path.
  public init(ranges: [RangeMergeFields], at path: Path) {
    self.init("rm", path, capacity: ranges.reduce(0) { $0 + 64 + $1.data.estimatedSize }) { writer in
      writer.beginArray()
      for range in ranges {
        writer.beginObject()
        if let start = range.start {
          writer.key("s")
          writer.string(start.description)
        }
        if let end = range.end {
          writer.key("e")
          writer.string(end.description)
        }
        writer.key("m")
        writer.node(range.data)
        writer.endObject()
      }
      writer.endArray()
    }
  }

  private init(_ action: String, _ path: Path, capacity: Int, _ write: (inout JSONWriter) -> Void) {
    var writer = JSONWriter(capacity: capacity + 64)
    writer.beginData()
    writer.key("a")
    writer.string(action)
    writer.key("b")
    writer.beginObject()
    writer.key("p")
    writer.string(path.description)
    writer.key("d")
    write(&writer)
    bytes = writer.bytes
  }

  /// The bytes that follow ``bytes`` in the message to one query. A query without a filter has no tag.
  public static func suffix(tag: Int64?) -> [UInt8] {
    guard let tag else { return Array("}}}".utf8) }
    return Array(",\"t\":\(tag)}}}".utf8)
  }

  /// The complete message to one query.
  public func message(tag: Int64?) -> [UInt8] { bytes + Self.suffix(tag: tag) }
}

extension JSONWriter {
  /// Writes an object of relative paths and their values.
  mutating func children(_ children: [(Path, Node)]) {
    beginObject()
    for (path, node) in children {
      key(path.description)
      self.node(node)
    }
    endObject()
  }
}
