// Finds the ends of tokens in the buffered bytes. ``JSONReader`` then reads complete tokens.

import JSON

extension NodeStreamReader {
  /// The end of the string, number or literal at the position; nil if it is incomplete.
  mutating func endOfScalar(_ first: UInt8) throws(RealtimeError) -> Int? {
    if first == UInt8(ascii: "\"") { return try endOfString(from: position) }
    var index = max(scanned, position)
    while index < pending.count {
      switch pending[index] {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
        index += 1
      default:
        guard index > position else { throw .notJSON }
        return index
      }
      guard index - position <= 4096 else { throw .notJSON }
    }
    scanned = index
    return isLast && index > position ? index : nil
  }

  /// The end of the string that begins at `start`; nil if it is incomplete. A later call resumes the scan at `scanned`.
  private mutating func endOfString(from start: Int) throws(RealtimeError) -> Int? {
    var index = max(scanned, start + 1)
    while index < pending.count {
      switch pending[index] {
      case UInt8(ascii: "\""): return index + 1
      case UInt8(ascii: "\\"):
        // The escape may be incomplete.
        guard let escape = try escape(at: index) else { return try recordIncomplete(start, index) }
        index += escape.length
        escapeOverhead += escape.length - escape.bytes
      default: index += 1
      }
    }
    return try recordIncomplete(start, index)
  }

  /// The length of an escape and the number of bytes that it represents; nil if it is incomplete.
  private func escape(at index: Int) throws(RealtimeError) -> (length: Int, bytes: Int)? {
    guard index + 1 < pending.count else { return nil }
    guard pending[index + 1] == UInt8(ascii: "u") else { return (2, 1) }
    guard index + 6 <= pending.count else { return nil }
    let digits = String(decoding: pending[(index + 2)..<(index + 6)], as: UTF8.self)
    guard let unit = UInt16(digits, radix: 16) else { throw .notJSON }
    // Each surrogate counts two bytes, half of a four-byte character.
    return (6, unit < 0x80 ? 1 : unit < 0x800 || (0xD800...0xDFFF).contains(unit) ? 2 : 3)
  }

  /// Records how far an incomplete string was scanned.
  private mutating func recordIncomplete(_ start: Int, _ index: Int) throws(RealtimeError) -> Int? {
    scanned = index
    guard index - start - 1 - escapeOverhead <= limits.stringBytes else {
      throw .invalidData("string longer than \(limits.stringBytes) bytes")
    }
    return nil
  }

  /// The end of the value at the position; nil if it is incomplete. It is used only for the small values of members
  /// whose names begin with a dot.
  mutating func endOfValue() throws(RealtimeError) -> Int? {
    let first = pending[position]
    guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return try endOfScalar(first) }
    var depth = 0
    var index = position
    while index < pending.count {
      switch pending[index] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0 { return index + 1 }
      case UInt8(ascii: "\""):
        (scanned, escapeOverhead) = (index + 1, 0)
        let end = try endOfString(from: index)
        (scanned, escapeOverhead) = (position, 0)
        // For an incomplete string, scans to the end of the buffered bytes.
        index = (end ?? pending.count) - 1
      default: break
      }
      index += 1
      // Only a server value is an object here, and it is short.
      guard index - position <= 4096 else { throw .invalidData("unknown server value") }
    }
    scanned = position
    return nil
  }

  // MARK: Values of tokens

  func node(_ range: Range<Int>) throws(RealtimeError) -> Node { try read(prefix: "", range, suffix: "") }

  func string(_ range: Range<Int>) throws(RealtimeError) -> String {
    let result = pending.withUnsafeBytes { raw in
      Result { () throws(JSONError) in
        var reader = try JSONReader(unsafeBytes: UnsafeRawBufferPointer(rebasing: raw[range]))
        return try reader.readString()
      }
    }
    guard case .success(let text) = result else { throw .notJSON }
    return text
  }

  /// Reads the value of a member whose name begins with a dot, as a leaf. For `.priority`, the leaf has the priority
  /// and a meaningless value.
  func member(_ name: String, _ range: Range<Int>) throws(RealtimeError) -> Node {
    switch name {
    case ".value": try read(prefix: "{\".value\":", range, suffix: "}")
    case ".sv": try read(prefix: "{\".sv\":", range, suffix: "}")
    default: try read(prefix: "{\".value\":0,\".priority\":", range, suffix: "}")
    }
  }

  private func read(
    prefix: String, _ range: Range<Int>, suffix: String
  ) throws(RealtimeError) -> Node {
    if prefix.isEmpty {
      return try pending.withUnsafeBytes { raw in
        node(UnsafeRawBufferPointer(rebasing: raw[range]))
      }.get()
    }
    let text = Array(prefix.utf8) + pending[range] + Array(suffix.utf8)
    return try text.withUnsafeBytes { node($0) }.get()
  }

  private func node(_ bytes: UnsafeRawBufferPointer) -> Result<Node, RealtimeError> {
    do throws(JSONError) {
      return .success(try Node(json: bytes, limits: limits))
    } catch {
      return .failure(error.realtimeError(in: bytes))
    }
  }
}

/// The state of an open object or array: which of its members are known to have values.
struct NodeStreamFrame: Sendable {
  let isArray: Bool
  /// The number of members or elements so far.
  var count = 0
  /// Whether any member is a child, even a null child.
  var hasMembers = false
  /// A child that is known to have a value; nil if there is none.
  private var child: ChildKey?
  /// Whether other children may have values. A later member with the same name may have replaced them.
  private var otherChildrenMayHaveValues = false
  private var value: LeafValue?
  private var deferred: LeafValue?
  private var priority: Priority?
  private var last: ChildKey?
  /// Whether all names so far ascend in byte order, and whether they ascend in key order.
  private var ascendsInByteOrder = true
  private var ascendsInKeyOrder = true

  /// Whether a value is known to be empty.
  enum Content: Sendable {
    case empty
    case present
    /// A value, unless a later member with the same name replaced it.
    case uncertain
  }

  init(isArray: Bool) { self.isArray = isArray }

  /// Records the content of a child.
  mutating func record(_ key: ChildKey, _ content: Content) {
    if content == .present, child == nil {
      child = key
    } else if content != .empty {
      otherChildrenMayHaveValues = true
    }
  }

  /// Records that a later member with the same name may have replaced a child's earlier values.
  mutating func discardValue(of key: ChildKey) {
    if child == key { child = nil }
  }

  /// Records a name. Returns whether it may repeat an earlier one: names that ascend in either order never repeat.
  mutating func mayRepeat(_ key: ChildKey) -> Bool {
    defer { last = key }
    guard let last else { return false }
    if ascendsInByteOrder, !last.text.utf8.lexicographicallyPrecedes(key.text.utf8) {
      ascendsInByteOrder = false
    }
    if ascendsInKeyOrder, !(last < key) { ascendsInKeyOrder = false }
    return !ascendsInByteOrder && !ascendsInKeyOrder
  }

  /// Records a member that begins with a dot.
  mutating func record(_ name: String, _ node: Node) {
    switch name {
    case ".value": value = node.leafValue
    case ".sv": deferred = node.leafValue
    default: priority = node.priority
    }
  }

  /// Emits the object's own value or priority.
  ///
  /// - Returns: whether the object is empty, has a value, or may have one.
  func emit(at path: [ChildKey], _ emit: (NodeStreamReader.Event) -> Void) throws(RealtimeError) -> Content {
    if value != nil || deferred != nil {
      guard !hasMembers, value == nil || deferred == nil else {
        throw .invalidData("\(value == nil ? ".sv" : ".value") may not have other children beside it")
      }
      if let leaf = value ?? deferred { emit(.row(path, .leaf(leaf, priority: priority))) }
      return .present
    }
    let priority = priority.map { Node.leaf($0.leafValue) }
    if child != nil {
      if let priority { emit(.row(path + [.priority], priority)) }
      return .present
    }
    guard otherChildrenMayHaveValues else { return .empty }
    if let priority { emit(.priority(path, priority)) }
    return .uncertain
  }
}
