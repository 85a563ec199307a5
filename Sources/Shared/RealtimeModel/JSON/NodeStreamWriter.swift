// Writes a stream of rows as JSON: the inverse of ``NodeStreamReader``.
//
// Invariant: the writer holds only the path of the current leaf, the priorities of the open objects, and the output
// that was not yet taken.

import JSON

/// Writes one JSON text in export format from rows in the store's order.
public struct NodeStreamWriter: Sendable {
  private var writer: JSONWriter
  /// The keys of the open objects, from the root's child down.
  private var open: [ChildKey] = []
  /// The priorities of the root and of the open objects, which are written after the children.
  private var priorities: [LeafValue?] = [nil]
  private var isObject = false
  private var isLeaf = false

  /// Creates a writer at the start of a text.
  public init(pretty: Bool = false) { writer = JSONWriter(pretty: pretty, capacity: 64 << 10) }

  /// The number of written bytes that ``take()`` would return.
  public var count: Int { writer.bytes.count }

  /// Removes and returns the bytes written since the last call.
  public mutating func take() -> [UInt8] { writer.take() }

  /// Writes a leaf. At a path that ends in `.priority`, writes the priority of an object. Rows below one object must be
  /// contiguous.
  public mutating func row(_ path: [ChildKey], _ value: Node) {
    guard let last = path.last else {
      isLeaf = true
      return writer.node(value, .export)
    }
    if !isObject { writer.beginObject() }
    isObject = true
    let parents = path.dropLast()
    var shared = 0
    while shared < parents.count, shared < open.count, open[shared] == path[shared] { shared += 1 }
    close(to: shared)
    for key in parents.dropFirst(shared) {
      writer.key(key.text)
      writer.beginObject()
      open.append(key)
      priorities.append(nil)
    }
    if last.isPriority {
      priorities[priorities.count - 1] = value.leafValue
    } else {
      writer.key(last.text)
      writer.node(value, .export)
    }
  }

  /// Ends the text. A text without rows is `null`.
  public mutating func finish() {
    close(to: 0)
    if isObject { endObject() } else if !isLeaf { writer.null() }
  }

  private mutating func close(to count: Int) {
    while open.count > count {
      open.removeLast()
      endObject()
      priorities.removeLast()
    }
  }

  private mutating func endObject() {
    if let priority = priorities.last ?? nil {
      writer.key(".priority")
      writer.leaf(priority)
    }
    writer.endObject()
  }
}
