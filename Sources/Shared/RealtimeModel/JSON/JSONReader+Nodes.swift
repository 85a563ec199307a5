// Reads nodes from JSON directly, without an intermediate value. Every incoming write takes this path.
//
// Invariant: a node that passes ``JSONReader/NodeRules/write`` can be stored and exported unchanged, except for nulls,
// empty objects and arrays, which a database does not keep.

public import JSON

extension JSONReader {
  /// How strictly data is validated.
  public enum NodeRules: Sendable {
    /// Data to store: rejects invalid keys, unknown keys that begin with a dot, a value together with children, and
    /// strings that are too long.
    case write
    /// Data from the server: skips unknown keys that begin with a dot, and accepts everything else.
    case read
  }

  /// Reads any value as a node in export format. Arrays become objects; `.priority`, `.value` and `.sv` have their
  /// special meaning.
  ///
  /// - Throws: ``JSONError``; its ``JSONError/realtimeError(in:)`` has Firebase's words.
  public mutating func readNode(
    _ rules: NodeRules = .write, limits: RealtimeLimits = .standard
  ) throws(JSONError) -> Node {
    switch try peekKind() {
    case .null:
      try readNull()
      return .empty
    case .bool: return .leaf(.bool(try readBool()))
    case .number: return .leaf(try leafNumber())
    case .string: return .leaf(.string(try leafString(rules, limits)))
    case .array:
      try beginArray()
      var children: [(ChildKey, Node)] = []
      var index = 0
      while try nextElement() {
        let child = try readNode(rules, limits: limits)
        if !child.isEmpty { children.append((ChildKey(String(index)), child)) }
        index += 1
      }
      return .object(children)
    case .object: return try objectNode(rules, limits)
    }
  }

  private mutating func leafNumber() throws(JSONError) -> LeafValue {
    switch try readNumber() {
    case .int(let value): .int(value)
    case .double(let value): .double(value)
    }
  }

  private mutating func leafString(
    _ rules: NodeRules, _ limits: RealtimeLimits
  ) throws(JSONError) -> String {
    let start = offset
    let text = try readString()
    if rules == .write, text.utf8.count > limits.stringBytes {
      throw JSONError(.invalidData, at: start, detail: "string longer than \(limits.stringBytes) bytes")
    }
    return text
  }

  private mutating func objectNode(
    _ rules: NodeRules, _ limits: RealtimeLimits
  ) throws(JSONError) -> Node {
    let start = offset
    try beginObject()
    var children: [(ChildKey, Node)] = []
    var hasEmptyChildren = false
    var value: LeafValue?
    var deferred: ServerValue?
    var priority: Priority?
    while let name = try nextKey() {
      let valueStart = offset
      if name.utf8.first == UInt8(ascii: ".") {
        switch name {
        case ".priority": priority = try self.priority(rules, limits)
        case ".value": value = try leafValue(rules, limits)
        case ".sv": deferred = try serverValue()
        default:
          if rules == .write { throw JSONError(.invalidKey, at: keyStart(before: valueStart)) }
          try skipValue()
        }
        continue
      }
      if rules == .write {
        guard name.utf8.count <= limits.keyBytes else {
          throw JSONError(
            .invalidKey, at: keyStart(before: valueStart),
            detail: "A key may have at most \(limits.keyBytes) bytes, and this has \(name.utf8.count).")
        }
        guard ChildKey.isValid(name) else { throw JSONError(.invalidKey, at: keyStart(before: valueStart)) }
      }
      let child = try readNode(rules, limits: limits)
      hasEmptyChildren = hasEmptyChildren || child.isEmpty
      children.append((ChildKey(name), child))
    }
    if value != nil || deferred != nil {
      if rules == .write, !children.isEmpty || (value != nil && deferred != nil) {
        let what = value == nil ? ".sv" : ".value"
        throw JSONError(.invalidData, at: start, detail: "\(what) may not have other children beside it")
      }
      if let value { return .leaf(value, priority: priority) }
      if let deferred { return .leaf(.deferred(deferred), priority: priority) }
    }
    if hasEmptyChildren {
      // A null removes an earlier value of the same key, because the last member with a key replaces earlier members.
      var last: [ChildKey: Node] = [:]
      for (key, child) in children { last[key] = child }
      children = last.map { ($0.key, $0.value) }
    }
    return .object(children, priority: priority)
  }

  /// Reads the value of `.value`: a scalar, a server value, or null. Null means no value.
  private mutating func leafValue(
    _ rules: NodeRules, _ limits: RealtimeLimits
  ) throws(JSONError) -> LeafValue? {
    let start = offset
    switch try readNode(rules, limits: limits).content {
    case .empty: return nil
    case .leaf(let value): return value
    case .children:
      throw JSONError(.invalidData, at: start, detail: ".value must be null, a boolean, a number or a string")
    }
  }

  /// Reads a priority: null, a number, a string, or a server value.
  private mutating func priority(
    _ rules: NodeRules, _ limits: RealtimeLimits
  ) throws(JSONError) -> Priority? {
    let start = offset
    let node = try readNode(rules, limits: limits)
    if node.isEmpty { return nil }
    if let value = node.leafValue, node.priority == nil {
      do throws(RealtimeError) { return try Priority(value) } catch {}
    }
    throw JSONError(.invalidData, at: start, detail: "priority must be null, a number or a string")
  }

  /// Reads the value of `.sv`.
  private mutating func serverValue() throws(JSONError) -> ServerValue {
    let start = offset
    let unknown = JSONError(.invalidData, at: start, detail: "unknown server value")
    switch try peekKind() {
    case .string:
      guard try readString() == "timestamp" else { throw unknown }
      return .timestamp
    case .object:
      try beginObject()
      var increment: RealtimeNumber?
      while let name = try nextKey() {
        guard name == "increment", try peekKind() == .number else { throw unknown }
        switch try readNumber() {
        case .int(let value): increment = .int(value)
        case .double(let value): increment = RealtimeNumber(value)
        }
      }
      guard let increment else { throw unknown }
      return .increment(increment)
    default: throw unknown
    }
  }
}

extension Node {
  /// Reads one JSON text in export format.
  ///
  /// - Throws: ``JSONError`` with the offset of malformed JSON or of data that cannot be stored.
  public init(
    json bytes: UnsafeRawBufferPointer, _ rules: JSONReader.NodeRules = .write,
    limits: RealtimeLimits = .standard
  ) throws(JSONError) {
    var reader = try JSONReader(unsafeBytes: bytes, limits: limits.json)
    self = try reader.readNode(rules, limits: limits)
    try reader.finish()
  }

  /// Reads one JSON text in export format.
  ///
  /// - Throws: ``JSONError`` with the offset of malformed JSON or of data that cannot be stored.
  public init(
    json bytes: [UInt8], _ rules: JSONReader.NodeRules = .write, limits: RealtimeLimits = .standard
  ) throws(JSONError) {
    let result = bytes.withUnsafeBytes { raw in
      Result { () throws(JSONError) in try Node(json: raw, rules, limits: limits) }
    }
    self = try result.get()
  }
}

extension JSONError.Code {
  /// An invalid key of a location.
  public static let invalidKey = JSONError.Code(name: "invalid key")
  /// A JSON value that the data model cannot express; ``JSONError/detail`` has the reason.
  public static let invalidData = JSONError.Code(name: "invalid data")
}

extension JSONError {
  /// The error in Firebase's words, for the sender of `bytes`.
  public func realtimeError(in bytes: UnsafeRawBufferPointer) -> RealtimeError {
    switch code {
    case .invalidKey:
      let location = position(in: bytes)
      let rule = detail.isEmpty ? "Key value can't be empty or contain $ # [ ] / or ." : detail
      return .invalidData("couldn't parse key beginning at \(location.line):\(location.column). \(rule)")
    case .invalidData: return .invalidData(detail)
    case .tooLarge: return .writeTooBig
    case .tooDeep: return .invalidData("nested too deeply")
    default: return .invalidData("couldn't parse JSON object, array, or value.")
    }
  }
}
