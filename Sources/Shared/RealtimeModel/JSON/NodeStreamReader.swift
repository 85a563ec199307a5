// Reads a stream of JSON that is too large for memory into rows: one row for each leaf and each priority of an object.
//
// Invariants
//   1. The reader holds the incomplete token (a key or a string of bounded length) and a few words for every open
//      object. It never holds a subtree.
//   2. The reader accepts the same texts as ``JSONReader/readNode(_:limits:)``, with the same meaning: the last of
//      several members with one name replaces the others. Whenever a name may repeat, an event instructs the receiver
//      to drop the earlier rows (``NodeStreamReader/Event/repeated(_:)``). Names in ascending order never repeat.
//   3. After such a drop, only the receiver knows whether an object still has children. Therefore its priority arrives
//      as conditional on children (``NodeStreamReader/Event/priority(_:_:)``).

import JSON

/// Reads one JSON text in export format chunk by chunk.
///
/// ```swift
/// var reader = NodeStreamReader()
/// while let chunk = await next() { try reader.read(chunk) { events.append($0) } }
/// try reader.finish { events.append($0) }
/// ```
public struct NodeStreamReader: Sendable {
  /// An event of the reader.
  public enum Event: Sendable {
    /// A leaf with its priority. The priority of an object is a leaf at a path that ends in `.priority`.
    case row([ChildKey], Node)
    /// The member at this path may repeat an earlier member. The receiver drops all earlier rows at and below the path.
    case repeated([ChildKey])
    /// The priority of the object at a path, as a leaf. The receiver stores it only if rows below the path remain.
    case priority([ChildKey], Node)
  }

  enum Expectation: Sendable {
    case value, element, key, colon, comma, end
  }

  let limits: RealtimeLimits
  /// The depth of the location at which the text is read, which counts towards the depth limit.
  private let depthAbove: Int
  /// The bytes of that location's path, which count towards the path limit.
  private let bytesAbove: Int
  /// The bytes that were received but not yet read.
  var pending: [UInt8] = []
  /// The index in `pending` of the next byte.
  var position = 0
  /// The index up to which the token at `position` was scanned.
  var scanned = 0
  /// The number of bytes by which the scanned part of the string is longer than its unescaped form.
  var escapeOverhead = 0
  /// Whether `pending` holds the end of the text.
  var isLast = false
  var expectation = Expectation.value
  /// The keys from the text's root to the next value.
  var path: [ChildKey] = []
  var frames: [NodeStreamFrame] = []
  /// The name of the current member if it begins with a dot.
  var dotName: String?
  private var consumed = 0
  private var line = 1
  private var lineStart = 0
  var keyStart = 0

  /// Creates a reader at the start of a text.
  ///
  /// - Parameter location: the location of the text's root.
  public init(limits: RealtimeLimits = .standard, at location: Path = .root) {
    self.limits = limits
    depthAbove = location.count
    bytesAbove = location.keyBytes
  }

  /// The bytes of the incomplete token.
  public var pendingBytes: Int { pending.count }

  /// The buffer capacity that is kept between chunks, in bytes.
  private static let retainedBytes = 1 << 20

  /// Reads the next chunk of the text.
  ///
  /// - Throws: ``RealtimeError`` in Firebase's words for malformed JSON or data that cannot be stored.
  public mutating func read(
    _ bytes: UnsafeRawBufferPointer, _ emit: (Event) -> Void
  ) throws(RealtimeError) {
    pending.append(contentsOf: bytes)
    while try readToken(emit) {}
    guard position > 0 else { return }
    if pending.capacity > Self.retainedBytes {
      pending = Array(pending[position...])
    } else {
      pending.removeFirst(position)
    }
    consumed += position
    (scanned, keyStart) = (scanned - position, keyStart - position)
    position = 0
  }

  /// Ends the text.
  ///
  /// - Throws: ``RealtimeError`` if it is incomplete.
  public mutating func finish(_ emit: (Event) -> Void) throws(RealtimeError) {
    isLast = true
    while try readToken(emit) {}
    guard expectation == .end, position == pending.count else { throw .notJSON }
  }

  /// Reads one token; false if more bytes are needed.
  private mutating func readToken(_ emit: (Event) -> Void) throws(RealtimeError) -> Bool {
    guard let byte = try skipSpace() else { return false }
    switch expectation {
    case .end: throw .notJSON
    case .colon:
      guard byte == UInt8(ascii: ":") else { throw .notJSON }
      consume(1)
      expectation = .value
      return true
    case .comma: return try afterMember(byte, emit)
    case .key: return try key(byte, emit)
    case .element:
      if byte == UInt8(ascii: "]"), frames.last?.count == 0 {
        consume(1)
        try close(emit)
        return true
      }
      try beginElement()
      expectation = .value
      return true
    case .value:
      if dotName != nil { return try readDotValue(emit) }
      return try value(byte, emit)
    }
  }

  // MARK: Bytes

  /// The next byte that is not white space.
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

  mutating func consume(_ count: Int) {
    position += count
    scanned = position
    escapeOverhead = 0
  }

  /// Firebase's error for an invalid key.
  func invalidKey(
    _ rule: String = "Key value can't be empty or contain $ # [ ] / or ."
  ) -> RealtimeError {
    .invalidData(
      "couldn't parse key beginning at \(line):\(consumed + keyStart - lineStart + 1). \(rule)")
  }

  // MARK: Structure

  private mutating func value(_ byte: UInt8, _ emit: (Event) -> Void) throws(RealtimeError) -> Bool {
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      consume(1)
      frames.append(NodeStreamFrame(isArray: byte == UInt8(ascii: "[")))
      expectation = byte == UInt8(ascii: "[") ? .element : .key
      return true
    default:
      guard let end = try endOfScalar(byte) else { return false }
      let node = try node(position..<end)
      consume(end - position)
      if !node.isEmpty {
        try checkDepth()
        emit(.row(path, node))
      }
      valueEnded(node.isEmpty ? .empty : .present)
      return true
    }
  }

  private mutating func key(_ byte: UInt8, _ emit: (Event) -> Void) throws(RealtimeError) -> Bool {
    if byte == UInt8(ascii: "}"), frames.last?.count == 0 {
      consume(1)
      try close(emit)
      return true
    }
    guard byte == UInt8(ascii: "\"") else { throw .notJSON }
    keyStart = position
    let end = try endOfScalar(byte)
    // Each byte of a key may be an escape of six bytes, and the key has two quotes.
    guard (end ?? pending.count) - position <= 6 * limits.keyBytes + 2 else {
      throw invalidKey("A key may have at most \(limits.keyBytes) bytes, and this has more.")
    }
    guard let end else { return false }
    let text = try string(position..<end)
    consume(end - position)
    try begin(text, emit)
    expectation = .colon
    return true
  }

  private mutating func begin(_ text: String, _ emit: (Event) -> Void) throws(RealtimeError) {
    guard let last = frames.indices.last else { throw .notJSON }
    frames[last].count += 1
    if text.utf8.first == UInt8(ascii: ".") {
      guard [".priority", ".value", ".sv"].contains(text) else { throw invalidKey() }
      dotName = text
      return
    }
    guard text.utf8.count <= limits.keyBytes else {
      throw invalidKey("A key may have at most \(limits.keyBytes) bytes, and this has \(text.utf8.count).")
    }
    guard ChildKey.isValid(text) else { throw invalidKey() }
    frames[last].hasMembers = true
    let key = ChildKey(text)
    try descend(to: key)
    if frames[last].mayRepeat(key) {
      frames[last].discardValue(of: key)
      emit(.repeated(path))
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

  /// Rejects data that is nested too deep. Empty arrays and objects are not data, so they may be deeper.
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

  private mutating func afterMember(_ byte: UInt8, _ emit: (Event) -> Void) throws(RealtimeError) -> Bool {
    guard let frame = frames.last else { throw .notJSON }
    switch byte {
    case UInt8(ascii: ","):
      consume(1)
      // After a comma another element or member must follow. The frame is no longer empty, so a closing bracket is
      // rejected.
      expectation = frame.isArray ? .element : .key
    case frame.isArray ? UInt8(ascii: "]") : UInt8(ascii: "}"):
      consume(1)
      try close(emit)
    default: throw .notJSON
    }
    return true
  }

  /// Ends the innermost object or array.
  private mutating func close(_ emit: (Event) -> Void) throws(RealtimeError) {
    guard let frame = frames.popLast() else { throw .notJSON }
    let content = try frame.emit(at: path, emit)
    if content == .present { try checkDepth() }
    valueEnded(content)
  }

  /// Records whether a value is empty, and expects the comma or bracket after it.
  private mutating func valueEnded(_ content: NodeStreamFrame.Content) {
    guard let last = frames.indices.last else {
      expectation = .end
      return
    }
    frames[last].record(path.removeLast(), content)
    expectation = .comma
  }

  /// Reads the value of a member whose name begins with a dot, once it is complete.
  private mutating func readDotValue(_ emit: (Event) -> Void) throws(RealtimeError) -> Bool {
    guard let name = dotName, let last = frames.indices.last else { throw .notJSON }
    guard let end = try endOfValue() else { return false }
    try frames[last].record(name, member(name, position..<end))
    consume(end - position)
    dotName = nil
    expectation = .comma
    return true
  }
}

extension RealtimeError {
  /// Firebase's error for malformed JSON.
  static let notJSON = RealtimeError.invalidData("couldn't parse JSON object, array, or value.")
}
