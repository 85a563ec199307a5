// The text of a push, written once for all who get it. Clients number their filtered queries each
// for themselves, so the number comes last: everything before it is shared.

public import RealtimeModel

/// A push of data but for the number of the query it goes to.
public struct PushEncoder: Sendable {
  /// The message up to where the number of a query would stand.
  public let bytes: [UInt8]

  /// A push that the value at a path is now `data`.
  public init(data: Node, at path: Path) {
    self.init("d", path, capacity: data.estimatedSize) { $0.node(data) }
  }

  /// A push that the values at paths below a path are now these.
  public init(merge children: [(Path, Node)], at path: Path) {
    self.init("m", path, capacity: children.reduce(0) { $0 + 32 + $1.1.estimatedSize }) { writer in
      writer.children(children)
    }
  }

  /// A push that ranges of the value at a path are now these.
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

  /// What stands after ``bytes`` in the message to one query; no tag is the default query.
  public static func ending(tag: Int64?) -> [UInt8] {
    guard let tag else { return Array("}}}".utf8) }
    return Array(",\"t\":\(tag)}}}".utf8)
  }

  /// The whole message to one query.
  public func message(tag: Int64?) -> [UInt8] { bytes + Self.ending(tag: tag) }
}

extension JSONWriter {
  /// Writes an object of relative paths and what belongs there.
  mutating func children(_ children: [(Path, Node)]) {
    beginObject()
    for (path, node) in children {
      key(path.description)
      self.node(node)
    }
    endObject()
  }
}
