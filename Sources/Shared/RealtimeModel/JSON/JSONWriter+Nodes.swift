// Writes nodes as JSON, in one of three formats.
//
// Invariant: reading a node's export format gives the same node.

public import JSON

/// The JSON format of a node.
public enum NodeFormat: Sendable {
  /// With priorities and without arrays. It is the format of the wire protocol and of backups.
  case export
  /// Without priorities; objects whose keys are mostly `0…n` become arrays. REST responses and the snapshots of client
  /// SDKs use it.
  case plain
  /// The keys of an object, each with the value `true`; leaves unchanged.
  case shallow
}

extension JSONWriter {
  /// Writes a node.
  public mutating func node(_ node: Node, _ format: NodeFormat = .export) {
    switch node.content {
    case .empty: null()
    case .leaf(let value):
      if format == .export, let priority = node.priority {
        beginObject()
        key(".value")
        leaf(value)
        key(".priority")
        leaf(priority.leafValue)
        endObject()
      } else {
        leaf(value)
      }
    case .children:
      switch format {
      case .export: object(node, .export, priority: node.priority)
      case .shallow: shallow(node)
      case .plain:
        if let length = node.arrayLength { array(node, length) } else { object(node, .plain, priority: nil) }
      }
    }
  }

  /// Writes a leaf's value; a server value in its `.sv` form.
  public mutating func leaf(_ value: LeafValue) {
    switch value {
    case .bool(let value): bool(value)
    case .int(let value): int(value)
    case .double(let value): double(value)
    case .string(let value): string(value)
    case .deferred(let value):
      beginObject()
      key(".sv")
      switch value {
      case .timestamp: string("timestamp")
      case .increment(let delta):
        beginObject()
        key("increment")
        leaf(LeafValue(delta))
        endObject()
      }
      endObject()
    }
  }

  private mutating func object(_ node: Node, _ format: NodeFormat, priority: Priority?) {
    beginObject()
    node.forEachChild { name, child in
      key(name.text)
      self.node(child, format)
      return true
    }
    if let priority {
      key(".priority")
      leaf(priority.leafValue)
    }
    endObject()
  }

  private mutating func shallow(_ node: Node) {
    beginObject()
    node.forEachChild { name, _ in
      key(name.text)
      bool(true)
      return true
    }
    endObject()
  }

  private mutating func array(_ node: Node, _ length: Int) {
    beginArray()
    var next = 0
    node.forEachChild { name, child in
      let index = name.arrayIndex ?? next
      while next < index {
        null()
        next += 1
      }
      self.node(child, .plain)
      next = index + 1
      return true
    }
    endArray()
  }
}

extension Node {
  /// The node as JSON.
  public func json(_ format: NodeFormat = .export, pretty: Bool = false) -> [UInt8] {
    var writer = JSONWriter(pretty: pretty, capacity: estimatedSize + 16)
    writer.node(self, format)
    return writer.bytes
  }
}
