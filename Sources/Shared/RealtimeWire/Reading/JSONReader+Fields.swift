// Reads fields that several messages share. A field of a wrong type is an error. Null means that the field is absent,
// because JavaScript clients send it for undefined values.

import JSON
import RealtimeModel

extension JSONReader {
  /// Reads a null, if it is the next value. Returns whether it was.
  mutating func consumeNull() throws(JSONError) -> Bool {
    guard try peekKind() == .null else { return false }
    try readNull()
    return true
  }

  mutating func optionalString() throws(JSONError) -> String? {
    try consumeNull() ? nil : try readString()
  }

  /// Splits a path of a server without validating its keys.
  ///
  /// - Throws: `JSONError` if it has more levels than the reader permits for JSON, since code that handles paths recurses
  ///   as well.
  func path(_ text: String) throws(JSONError) -> Path {
    let path = Path(text)
    guard path.count <= JSONLimits.standard.depth else { throw JSONError(.tooDeep, at: offset) }
    return path
  }

  mutating func optionalPath() throws(JSONError) -> Path? {
    guard let text = try optionalString() else { return nil }
    return try path(text)
  }

  mutating func optionalInt() throws(JSONError) -> Int64? {
    if try consumeNull() { return nil }
    let start = offset
    switch try readNumber() {
    case .int(let value): return value
    case .double(let value):
      guard let exact = Int64(exactly: value) else { throw JSONError(.unexpectedType, at: start) }
      return exact
    }
  }

  mutating func strings() throws(JSONError) -> [String] {
    var strings: [String] = []
    try beginArray()
    while try nextElement() { strings.append(try readString()) }
    return strings
  }

  /// Reads an object of relative paths and values, as in updates, in its order.
  mutating func children(
    _ rules: NodeRules, _ limits: RealtimeLimits = .standard
  ) throws(JSONError) -> [(Path, Node)] {
    if try consumeNull() { return [] }
    guard try peekKind() == .object else {
      throw JSONError(.invalidData, at: offset, detail: "an update must be an object of paths and values")
    }
    var children: [(Path, Node)] = []
    try beginObject()
    while let key = try nextKey() {
      if rules == .read {
        children.append((try self.path(key), try readNode(rules, limits: limits)))
        continue
      }
      let start = offset
      let path: Path
      do throws(RealtimeError) {
        path = try Path(validating: key, allowingPriority: true, limits: limits)
      } catch {
        throw JSONError(.invalidData, at: start, detail: "\(error.message) \(key)")
      }
      // An empty path would replace the location itself.
      if path.isRoot { throw JSONError(.invalidKey, at: keyStart(before: start)) }
      let node = try readNode(rules, limits: limits)
      if path.isPriority { try check(priority: node, at: start) }
      children.append((path, node))
    }
    return children
  }

  /// Rejects data at a `.priority` path that is not a valid priority.
  func check(priority node: Node, at start: Int) throws(JSONError) {
    if node.isEmpty { return }
    if let value = node.leafValue, node.priority == nil {
      do throws(RealtimeError) {
        _ = try Priority(value)
        return
      } catch {}
    }
    throw JSONError(.invalidData, at: start, detail: "priority must be null, a number or a string")
  }

  /// Reads a query object. An empty object or null means the default query.
  mutating func querySpec() throws(JSONError) -> QuerySpec {
    if try consumeNull() { return .default }
    let start = offset
    var fields: [(name: String, value: LeafValue?)] = []
    try beginObject()
    while let name = try nextKey() {
      let node = try readNode(.read)
      if case .children = node.content {
        throw JSONError(.invalidData, at: start, detail: "the query's \(name) must not be an object")
      }
      fields.append((name, node.leafValue))
    }
    do throws(RealtimeError) { return try QuerySpec(wireFields: fields) } catch {
      throw JSONError(.invalidQuery, at: start, detail: error.message)
    }
  }
}

extension JSONError.Code {
  /// An invalid query object; the detail is the complete error message.
  static let invalidQuery = JSONError.Code(name: "invalid query")
}
