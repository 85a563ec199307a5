// JSON that is too large for memory becomes rows while it arrives: one row a leaf, one a priority of an object.
//
// Invariants
//   1. What is held is the token that has not come whole, a key or a string no longer than it may be, and for every open
//      object a few words: never a subtree.
//   2. What is accepted, and what it means, is what ``JSONReader/readNode(_:limits:)`` says of the whole text. Of members
//      with one name the last counts there; here whoever takes the rows is told to drop the earlier ones, wherever a name
//      may have come before (``NodeStreamReader/Event/again(_:)``). Names in ascending order never may.
//   3. Whether an object that lost what it held by that still holds something only they know: a priority is told as one
//      that counts if so (``NodeStreamReader/Event/priority(_:_:)``).

/// Reads one JSON text in export format piece by piece.
///
/// ```swift
/// var reader = NodeStreamReader()
/// while let piece = await next() { try reader.read(piece) { rows.append($0) } }
/// try reader.finish { rows.append($0) }
/// ```
public struct NodeStreamReader: Sendable {
  /// What the text says.
  public enum Event: Sendable {
    /// A leaf, with its priority, or the priority of an object, as a leaf at a path that ends in `.priority`.
    case row([ChildKey], Node)
    /// What was told at and below a path before does not count: it comes again.
    case again([ChildKey])
    /// The priority, as a leaf, of an object at a path, if anything stands below it of what was told: what came again may
    /// have been all.
    case priority([ChildKey], Node)
  }

  enum Expectation: Sendable {
    case value, element, key, colon, comma, end
  }

  let limits: RealtimeLimits
  /// How deep the location lies that the text is for.
  private let depthAbove: Int
  /// The bytes of its path.
  private let bytesAbove: Int
  /// What has come and was not read.
  var pending: [UInt8] = []
  /// The next byte in `pending`.
  var position = 0
  /// How far the token at `position` was looked at already.
  var scanned = 0
  /// How many bytes more the escapes up to there have than what they stand for.
  var escaped = 0
  /// Whether nothing comes behind `pending`.
  var isLast = false
  var expectation = Expectation.value
  /// The keys from the text's root to where values are expected.
  var path: [ChildKey] = []
  var frames: [NodeStreamFrame] = []
  /// The member whose value is to come, if it is one of those that begin with a dot.
  var special: String?
  private var consumed = 0
  private var line = 1
  private var lineStart = 0
  var keyStart = 0

  /// Creates a reader at the start of a text.
  ///
  /// - Parameter location: the location that the text is for.
  public init(limits: RealtimeLimits = .standard, at location: Path = .root) {
    self.limits = limits
    depthAbove = location.count
    bytesAbove = location.keyBytes
  }

  /// The bytes of the token that has not come whole.
  public var pendingBytes: Int { pending.count }

  /// What is kept allocated for the tokens to come.
  private static let keptBytes = 1 << 20

  /// Reads the next piece of the text.
  /// - Throws: ``RealtimeError`` for what cannot be stored or is not JSON, in the product's words.
  public mutating func read(
    _ bytes: UnsafeRawBufferPointer, _ tell: (Event) -> Void
  ) throws(RealtimeError) {
    pending.append(contentsOf: bytes)
    while try step(tell) {}
    guard position > 0 else { return }
    if pending.capacity > Self.keptBytes {
      pending = Array(pending[position...])
    } else {
      pending.removeFirst(position)
    }
    consumed += position
    (scanned, keyStart) = (scanned - position, keyStart - position)
    position = 0
  }

  /// Ends the text.
  /// - Throws: ``RealtimeError`` if it is not whole.
  public mutating func finish(_ tell: (Event) -> Void) throws(RealtimeError) {
    isLast = true
    while try step(tell) {}
    guard expectation == .end, position == pending.count else { throw .notJSON }
  }

  /// Reads one token; false if more bytes are needed.
  private mutating func step(_ tell: (Event) -> Void) throws(RealtimeError) -> Bool {
    guard let byte = try skipSpace() else { return false }
    switch expectation {
    case .end: throw .notJSON
    case .colon:
      guard byte == UInt8(ascii: ":") else { throw .notJSON }
      take(1)
      expectation = .value
      return true
    case .comma: return try afterMember(byte, tell)
    case .key: return try key(byte, tell)
    case .element:
      if byte == UInt8(ascii: "]"), frames.last?.count == 0 {
        take(1)
        try close(tell)
        return true
      }
      try beginElement()
      expectation = .value
      return true
    case .value:
      if special != nil { return try specialValue(tell) }
      return try value(byte, tell)
    }
  }

  // MARK: Bytes

  /// The next byte that is no white space.
  private mutating func skipSpace() throws(RealtimeError) -> UInt8? {
    while position < pending.count {
      let byte = pending[position]
      switch byte {
      case 0x0A:
        line += 1
        lineStart = consumed + position + 1
      case 0x20, 0x0D, 0x09: break
      default: return byte
      }
      position += 1
      scanned = position
    }
    return nil
  }

  mutating func take(_ count: Int) {
    position += count
    scanned = position
    escaped = 0
  }

  /// What the product says of a key that cannot be stored.
  func invalidKey(
    _ rule: String = "Key value can't be empty or contain $ # [ ] / or ."
  ) -> RealtimeError {
    .invalidData(
      "couldn't parse key beginning at \(line):\(consumed + keyStart - lineStart + 1). \(rule)")
  }

  // MARK: Structure

  private mutating func value(_ byte: UInt8, _ tell: (Event) -> Void) throws(RealtimeError) -> Bool {
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      take(1)
      frames.append(NodeStreamFrame(isArray: byte == UInt8(ascii: "[")))
      expectation = byte == UInt8(ascii: "[") ? .element : .key
      return true
    default:
      guard let end = try endOfScalar(byte) else { return false }
      let node = try node(position..<end)
      take(end - position)
      if !node.isEmpty {
        try checkDepth()
        tell(.row(path, node))
      }
      valueEnded(node.isEmpty ? .nothing : .something)
      return true
    }
  }

  private mutating func key(_ byte: UInt8, _ tell: (Event) -> Void) throws(RealtimeError) -> Bool {
    if byte == UInt8(ascii: "}"), frames.last?.count == 0 {
      take(1)
      try close(tell)
      return true
    }
    guard byte == UInt8(ascii: "\"") else { throw .notJSON }
    keyStart = position
    let end = try endOfScalar(byte)
    // As many as a key may have if all of it is escaped.
    guard (end ?? pending.count) - position <= 6 * limits.keyBytes + 2 else {
      throw invalidKey("A key may have at most \(limits.keyBytes) bytes, and this has more.")
    }
    guard let end else { return false }
    let text = try string(position..<end)
    take(end - position)
    try begin(text, tell)
    expectation = .colon
    return true
  }

  private mutating func begin(_ text: String, _ tell: (Event) -> Void) throws(RealtimeError) {
    guard let last = frames.indices.last else { throw .notJSON }
    frames[last].count += 1
    if text.utf8.first == UInt8(ascii: ".") {
      guard [".priority", ".value", ".sv"].contains(text) else { throw invalidKey() }
      special = text
      return
    }
    guard text.utf8.count <= limits.keyBytes else {
      throw invalidKey("A key may have at most \(limits.keyBytes) bytes, and this has \(text.utf8.count).")
    }
    guard ChildKey.isValid(text) else { throw invalidKey() }
    frames[last].hasMembers = true
    let key = ChildKey(text)
    try descend(to: key)
    if frames[last].mayHaveCome(key) {
      frames[last].loses(key)
      tell(.again(path))
    }
  }

  private mutating func beginElement() throws(RealtimeError) {
    guard let last = frames.indices.last else { throw .notJSON }
    try descend(to: ChildKey(String(frames[last].count)))
    frames[last].count += 1
  }

  private mutating func descend(to key: ChildKey) throws(RealtimeError) {
    path.append(key)
    guard path.count <= JSONLimits.standard.depth else { throw .invalidData("nested too deeply") }
  }

  /// Refuses data that lies too deep: arrays and objects that hold nothing may.
  private func checkDepth() throws(RealtimeError) {
    guard path.count + depthAbove <= limits.depth else {
      throw .invalidData("data lies more than \(limits.depth) levels deep")
    }
    if limits.mayExceedPathBytes(path.count + depthAbove) {
      guard bytesAbove + Path(keys: path).keyBytes <= RealtimeLimits.pathBytes else {
        throw .invalidData("the path to a value is longer than \(RealtimeLimits.pathBytes) bytes")
      }
    }
  }

  private mutating func afterMember(_ byte: UInt8, _ tell: (Event) -> Void) throws(RealtimeError) -> Bool {
    guard let frame = frames.last else { throw .notJSON }
    switch byte {
    case UInt8(ascii: ","):
      take(1)
      // A closing bracket behind a comma is refused, since the frame has members by now.
      expectation = frame.isArray ? .element : .key
    case frame.isArray ? UInt8(ascii: "]") : UInt8(ascii: "}"):
      take(1)
      try close(tell)
    default: throw .notJSON
    }
    return true
  }

  /// Ends the innermost object or array.
  private mutating func close(_ tell: (Event) -> Void) throws(RealtimeError) {
    guard let frame = frames.popLast() else { throw .notJSON }
    let content = try frame.tell(at: path, tell)
    if content == .something { try checkDepth() }
    valueEnded(content)
  }

  /// Goes on behind a value.
  private mutating func valueEnded(_ content: NodeStreamFrame.Content) {
    guard let last = frames.indices.last else {
      expectation = .end
      return
    }
    frames[last].note(path.removeLast(), content)
    expectation = .comma
  }

  /// Reads the value of a member that begins with a dot, once it has come whole.
  private mutating func specialValue(_ tell: (Event) -> Void) throws(RealtimeError) -> Bool {
    guard let name = special, let last = frames.indices.last else { throw .notJSON }
    guard let end = try endOfValue() else { return false }
    try frames[last].note(name, member(name, position..<end))
    take(end - position)
    special = nil
    expectation = .comma
    return true
  }
}

extension RealtimeError {
  /// What is no JSON.
  static let notJSON = RealtimeError.invalidData("couldn't parse JSON object, array, or value.")
}
