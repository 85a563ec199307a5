// JSON becomes a tree directly, without a value in between: the way of every write that comes in.
//
// Invariant: what is accepted when validating could be stored and exported again unchanged, apart
// from what a database never keeps (nulls, empty objects, array form).

extension JSONReader {
  /// How strictly data is taken.
  public enum NodeRules: Sendable {
    /// Data from somebody who wants it stored: bad keys, unknown keys with a dot, a value beside
    /// children and over-long strings are refused.
    case write
    /// Data from the server: unknown keys with a dot are passed over, everything else is believed.
    case read
  }

  /// Reads any value as a tree in export format: arrays become objects, `.priority`, `.value` and
  /// `.sv` mean what they mean to the databases.
  ///
  /// - Throws: ``JSONError``; its ``JSONError/realtimeError(in:)`` has the product's words.
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
      let place = offset
      if name.utf8.first == UInt8(ascii: ".") {
        switch name {
        case ".priority": priority = try self.priority(rules, limits)
        case ".value": value = try leafValue(rules, limits)
        case ".sv": deferred = try serverValue()
        default:
          if rules == .write { throw JSONError(.invalidKey, at: keyStart(before: place)) }
          try skipValue()
        }
        continue
      }
      if rules == .write {
        guard name.utf8.count <= limits.keyBytes else {
          throw JSONError(
            .invalidKey, at: keyStart(before: place),
            detail: "A key may have at most \(limits.keyBytes) bytes, and this has \(name.utf8.count).")
        }
        guard ChildKey.isValid(name) else { throw JSONError(.invalidKey, at: keyStart(before: place)) }
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
      // A null takes an earlier value of the same key with it, as in any reader where the last counts.
      var last: [ChildKey: Node] = [:]
      for (key, child) in children { last[key] = child }
      children = last.map { ($0.key, $0.value) }
    }
    return .object(children, priority: priority)
  }

  /// The opening quote of the key whose colon ends just before `place`.
  package func keyStart(before place: Int) -> Int {
    var index = place - 1
    while index > 0, base[index] != UInt8(ascii: "\"") { index -= 1 }
    index -= 1
    while index > 0 {
      if base[index] == UInt8(ascii: "\"") {
        var slashes = 0
        while index - slashes > 0, base[index - slashes - 1] == UInt8(ascii: "\\") { slashes += 1 }
        if slashes.isMultiple(of: 2) { break }
      }
      index -= 1
    }
    return max(index, 0)
  }

  /// Reads what `.value` may hold: a scalar, a server value, or null, which counts as absent.
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

  /// Reads what `.sv` may hold.
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
  /// Reads one JSON text in export format as a tree.
  ///
  /// - Throws: ``JSONError`` with the place of what cannot be stored or is not JSON.
  public init(
    json bytes: UnsafeRawBufferPointer, _ rules: JSONReader.NodeRules = .write,
    limits: RealtimeLimits = .standard
  ) throws(JSONError) {
    var reader = try JSONReader(unsafeBytes: bytes, limits: limits.json)
    self = try reader.readNode(rules, limits: limits)
    try reader.finish()
  }

  /// Reads one JSON text in export format as a tree.
  ///
  /// - Throws: ``JSONError`` with the place of what cannot be stored or is not JSON.
  public init(
    json bytes: [UInt8], _ rules: JSONReader.NodeRules = .write, limits: RealtimeLimits = .standard
  ) throws(JSONError) {
    let result = bytes.withUnsafeBytes { raw in
      Result { () throws(JSONError) in try Node(json: raw, rules, limits: limits) }
    }
    self = try result.get()
  }
}

extension JSONError {
  /// The error in the product's own words, for the sender of `bytes`.
  public func realtimeError(in bytes: UnsafeRawBufferPointer) -> RealtimeError {
    switch code {
    case .invalidKey:
      let place = position(in: bytes)
      let rule = detail.isEmpty ? "Key value can't be empty or contain $ # [ ] / or ." : detail
      return .invalidData("couldn't parse key beginning at \(place.line):\(place.column). \(rule)")
    case .invalidData: return .invalidData(detail)
    case .tooLarge: return .writeTooBig
    case .tooDeep: return .invalidData("nested too deeply")
    default: return .invalidData("couldn't parse JSON object, array, or value.")
    }
  }
}
