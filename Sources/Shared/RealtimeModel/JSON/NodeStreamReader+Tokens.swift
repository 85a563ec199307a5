// Where tokens end in what has come, and what they say: the latter by the same reader as any other JSON.

extension NodeStreamReader {
  /// The end of the string, number or word at the position; nil if it has not come whole.
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

  /// The end of the string that begins at a place, from how far it was looked at.
  private mutating func endOfString(from start: Int) throws(RealtimeError) -> Int? {
    var index = max(scanned, start + 1)
    while index < pending.count {
      switch pending[index] {
      case UInt8(ascii: "\""): return index + 1
      case UInt8(ascii: "\\"):
        // What is escaped may have to come first.
        guard let escape = try escape(at: index) else { return try endless(start, index) }
        index += escape.length
        escaped += escape.length - escape.bytes
      default: index += 1
      }
    }
    return try endless(start, index)
  }

  /// How long an escape is, and how many bytes it stands for; nil if it has not come whole.
  private func escape(at index: Int) throws(RealtimeError) -> (length: Int, bytes: Int)? {
    guard index + 1 < pending.count else { return nil }
    guard pending[index + 1] == UInt8(ascii: "u") else { return (2, 1) }
    guard index + 6 <= pending.count else { return nil }
    let digits = String(decoding: pending[(index + 2)..<(index + 6)], as: UTF8.self)
    guard let unit = UInt16(digits, radix: 16) else { throw .notJSON }
    // A surrogate is half of a character of four bytes.
    return (6, unit < 0x80 ? 1 : unit < 0x800 || (0xD800...0xDFFF).contains(unit) ? 2 : 3)
  }

  /// Takes note of how far a string was looked at that has not come whole.
  private mutating func endless(_ start: Int, _ index: Int) throws(RealtimeError) -> Int? {
    scanned = index
    guard index - start - 1 - escaped <= limits.stringBytes else {
      throw .invalidData("string longer than \(limits.stringBytes) bytes")
    }
    return nil
  }

  /// The end of the whole value at the position; nil if it has not come whole. For members that begin with a dot, whose
  /// values are small.
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
        (scanned, escaped) = (index + 1, 0)
        let end = try endOfString(from: index)
        (scanned, escaped) = (position, 0)
        // What has not come whole is bounded by what has come.
        index = (end ?? pending.count) - 1
      default: break
      }
      index += 1
      // An object here is one of a server value.
      guard index - position <= 4096 else { throw .invalidData("unknown server value") }
    }
    scanned = position
    return nil
  }

  // MARK: What tokens say

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

  /// What a member that begins with a dot makes of a leaf: the leaf itself, or one with the priority.
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

/// An object or array that has begun.
struct NodeStreamFrame: Sendable {
  let isArray: Bool
  /// How many members or elements have come.
  var count = 0
  /// Whether any of them is a child, also one without a value.
  var hasMembers = false
  /// A child that holds something.
  private var child: ChildKey?
  /// Whether others hold something, unless they came again.
  private var mayHoldOthers = false
  private var value: LeafValue?
  private var deferred: LeafValue?
  private var priority: Priority?
  private var last: ChildKey?
  /// Whether the names came in the order of their bytes, and whether in the order of keys, up to now.
  private var isByBytes = true
  private var isByKeys = true

  /// What is known of an object or any other value.
  enum Content: Sendable {
    case nothing
    case something
    /// Something, unless it came again.
    case perhaps
  }

  init(isArray: Bool) { self.isArray = isArray }

  /// Takes note of what a child holds.
  mutating func note(_ key: ChildKey, _ content: Content) {
    if content == .something, child == nil {
      child = key
    } else if content != .nothing {
      mayHoldOthers = true
    }
  }

  /// Takes note that a child counts no more if it has come before.
  mutating func loses(_ key: ChildKey) {
    if child == key { child = nil }
  }

  /// Takes note of a name; whether it may have come before.
  mutating func mayHaveCome(_ key: ChildKey) -> Bool {
    defer { last = key }
    guard let last else { return false }
    if isByBytes, !last.text.utf8.lexicographicallyPrecedes(key.text.utf8) { isByBytes = false }
    if isByKeys, !(last < key) { isByKeys = false }
    return !isByBytes && !isByKeys
  }

  /// Takes note of a member that begins with a dot.
  mutating func note(_ name: String, _ node: Node) {
    switch name {
    case ".value": value = node.leafValue
    case ".sv": deferred = node.leafValue
    default: priority = node.priority
    }
  }

  /// Tells what the object says beyond its children, and what is known of it.
  func tell(at path: [ChildKey], _ tell: (NodeStreamReader.Event) -> Void) throws(RealtimeError) -> Content {
    if value != nil || deferred != nil {
      guard !hasMembers, value == nil || deferred == nil else {
        throw .invalidData("\(value == nil ? ".sv" : ".value") may not have other children beside it")
      }
      if let leaf = value ?? deferred { tell(.row(path, .leaf(leaf, priority: priority))) }
      return .something
    }
    let priority = priority.map { Node.leaf($0.leafValue) }
    if child != nil {
      if let priority { tell(.row(path + [.priority], priority)) }
      return .something
    }
    guard mayHoldOthers else { return .nothing }
    if let priority { tell(.priority(path, priority)) }
    return .perhaps
  }
}
