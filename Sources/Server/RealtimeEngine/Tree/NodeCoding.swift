// Encodes nodes as bytes, for the values of tree rows, onDisconnect rows and change log records.
//
//   node     0x00 | leaf | object
//   leaf     tag [priority] payload      tag 0x01...0x08, plus 0x80 if a priority (itself a leaf) follows
//   object   0x10, plus 0x80 for a priority; the number of children; for each the key and the node
//   string   its length, then UTF-8; lengths are LEB128

import OrderedStore
import RealtimeModel

/// Encodes nodes as bytes.
struct NodeEncoder {
  /// The flag in the tag of a node with a priority.
  static let priorityFlag: UInt8 = 0x80

  private(set) var bytes: [UInt8] = []

  /// Returns the bytes of one node.
  static func encode(_ node: Node) -> [UInt8] {
    var encoder = NodeEncoder()
    encoder.append(node)
    assert(
      (try? NodeDecoder.decode(encoder.bytes)) == node, "invariant: an encoded node decodes to the same node")
    return encoder.bytes
  }

  mutating func append(_ node: Node) {
    switch node.content {
    case .empty: bytes.append(0x00)
    case .leaf(let value): append(value, priority: node.priority)
    case .children:
      appendTag(0x10, node.priority)
      append(node.childCount)
      node.forEachChild { key, child in
        append(key.text)
        append(child)
        return true
      }
    }
  }

  mutating func append(_ value: LeafValue, priority: Priority? = nil) {
    switch value {
    case .bool(false): appendTag(0x01, priority)
    case .bool(true): appendTag(0x02, priority)
    case .int(let number):
      appendTag(0x03, priority)
      append(UInt64(bitPattern: number))
    case .double(let number):
      appendTag(0x04, priority)
      append(number.bitPattern)
    case .string(let text):
      appendTag(0x05, priority)
      append(text)
    case .deferred(.timestamp): appendTag(0x06, priority)
    case .deferred(.increment(.int(let number))):
      appendTag(0x07, priority)
      append(UInt64(bitPattern: number))
    case .deferred(.increment(.double(let number))):
      appendTag(0x08, priority)
      append(number.bitPattern)
    }
  }

  private mutating func appendTag(_ tag: UInt8, _ priority: Priority?) {
    guard let priority else { return bytes.append(tag) }
    bytes.append(tag | NodeEncoder.priorityFlag)
    append(priority.leafValue)
  }

  mutating func append(_ byte: UInt8) { bytes.append(byte) }

  mutating func append(_ text: String) {
    append(text.utf8.count)
    bytes.append(contentsOf: text.utf8)
  }

  mutating func append(_ path: Path) {
    append(path.keys.count)
    for key in path.keys { append(key.text) }
  }

  mutating func append(_ count: Int) {
    var rest = UInt64(count)
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  private mutating func append(_ bits: UInt64) {
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
    }
  }
}

/// Decodes the bytes of ``NodeEncoder``. Every read is checked: corrupt bytes throw an error.
struct NodeDecoder {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  /// The number of bytes read.
  var offset: Int { position }
  /// Whether all bytes were read.
  var isAtEnd: Bool { position == bytes.count }

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// Returns the node of some bytes.
  static func decode(_ bytes: [UInt8]) throws -> Node {
    try bytes.withUnsafeBytes { raw in
      var decoder = NodeDecoder(raw)
      return try decoder.node()
    }
  }

  static let corrupted = StoreError(.corrupted, "a row of the realtime tree cannot be read")

  mutating func node(depth: Int = 0) throws -> Node {
    guard depth <= 1_000 else { throw NodeDecoder.corrupted }
    let tag = try byte()
    let priority: Priority? = tag & 0x80 == 0 ? nil : try Priority(leaf(tag: try byte()))
    switch tag & 0x7F {
    case 0x00: return .empty
    case 0x10:
      let count = try count()
      guard count <= bytes.count - position else { throw NodeDecoder.corrupted }
      var children: [(ChildKey, Node)] = []
      children.reserveCapacity(count)
      for _ in 0..<count {
        let key = ChildKey(try text())
        children.append((key, try node(depth: depth + 1)))
      }
      return .object(children, priority: priority)
    default: return .leaf(try leaf(tag: tag & 0x7F), priority: priority)
    }
  }

  private mutating func leaf(tag: UInt8) throws -> LeafValue {
    switch tag {
    case 0x01: return .bool(false)
    case 0x02: return .bool(true)
    case 0x03: return .int(Int64(bitPattern: try bits()))
    case 0x04: return .double(Double(bitPattern: try bits()))
    case 0x05: return .string(try text())
    case 0x06: return .deferred(.timestamp)
    case 0x07: return .deferred(.increment(.int(Int64(bitPattern: try bits()))))
    case 0x08: return .deferred(.increment(.double(Double(bitPattern: try bits()))))
    default: throw NodeDecoder.corrupted
    }
  }

  /// Counts, for each level of a path, the children other than the one on the path, without decoding them. Stops at the
  /// level where the sum exceeds `maximum`. Returns nil if the encoded node itself is a leaf; a leaf further down ends
  /// the counts.
  mutating func siblingCounts(along path: ArraySlice<ChildKey>, atMost maximum: Int) throws -> [Int]? {
    var counts: [Int] = []
    var remaining = maximum
    for next in path {
      guard let count = try childCount() else { return counts.isEmpty ? nil : counts }
      counts.append(count)
      remaining -= max(0, count - 1)
      guard remaining >= 0 else { return counts }
      var isFound = false
      for _ in 0..<count where !isFound {
        isFound = try bytes(try self.count()).elementsEqual(next.text.utf8)
        if !isFound { try skip() }
      }
      guard isFound else { return counts }
      counts[counts.count - 1] -= 1
    }
    return counts
  }

  /// The number of children that follow; nil for a leaf.
  private mutating func childCount() throws -> Int? {
    let tag = try byte()
    if tag & NodeEncoder.priorityFlag != 0 { try skipLeaf(tag: try byte()) }
    switch tag & 0x7F {
    case 0x00: return 0
    case 0x10:
      let count = try count()
      guard count <= bytes.count - position else { throw NodeDecoder.corrupted }
      return count
    default: return nil
    }
  }

  private mutating func skip(depth: Int = 0) throws {
    guard depth <= 1_000 else { throw NodeDecoder.corrupted }
    let tag = try byte()
    if tag & NodeEncoder.priorityFlag != 0 { try skipLeaf(tag: try byte()) }
    switch tag & 0x7F {
    case 0x00: break
    case 0x10:
      for _ in 0..<(try count()) {
        _ = try bytes(try count())
        try skip(depth: depth + 1)
      }
    case let leaf: try skipLeaf(tag: leaf)
    }
  }

  private mutating func skipLeaf(tag: UInt8) throws {
    switch tag {
    case 0x01, 0x02, 0x06: break
    case 0x03, 0x04, 0x07, 0x08: _ = try bytes(8)
    case 0x05: _ = try bytes(try count())
    default: throw NodeDecoder.corrupted
    }
  }

  /// Reads the next `count` bytes.
  private mutating func bytes(_ count: Int) throws -> UnsafeRawBufferPointer {
    guard count <= bytes.count - position else { throw NodeDecoder.corrupted }
    defer { position += count }
    return UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)])
  }

  mutating func byte() throws -> UInt8 {
    guard position < bytes.count else { throw NodeDecoder.corrupted }
    defer { position += 1 }
    return bytes[position]
  }

  mutating func text() throws -> String {
    let count = try count()
    guard count <= bytes.count - position else { throw NodeDecoder.corrupted }
    defer { position += count }
    return String(
      decoding: UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)]), as: UTF8.self)
  }

  mutating func path() throws -> Path {
    let count = try count()
    guard count <= bytes.count - position else { throw NodeDecoder.corrupted }
    var keys: [ChildKey] = []
    for _ in 0..<count { keys.append(ChildKey(try text())) }
    return Path(keys: keys)
  }

  mutating func count() throws -> Int {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let next = try byte()
      value |= UInt64(next & 0x7F) << shift
      if next & 0x80 == 0 { break }
      shift += 7
      guard shift < 63 else { throw NodeDecoder.corrupted }
    }
    guard value <= UInt64(Int.max) else { throw NodeDecoder.corrupted }
    return Int(value)
  }

  private mutating func bits() throws -> UInt64 {
    var value: UInt64 = 0
    for _ in 0..<8 { value = value << 8 | UInt64(try byte()) }
    return value
  }
}
