// Reads the body of a request. All actions share one set of fields, and each action requires some of them.

import JSON
import RealtimeModel

/// The fields of a request's body, as far as they were read.
struct RequestBody {
  var path: Path?
  var data: Node?
  var children: [(Path, Node)] = []
  var query = QuerySpec.default
  var queryText: [UInt8]?
  var tag: Int64?
  var hash: String?
  var compoundHash: CompoundHashFields?
  var credential: String?
  var override: AuthenticateRequest.Override?
  var token: String?
  var counters: [String: Int64] = [:]

  /// The type of an action's field `d`.
  private enum DataType {
    case none, node, children
  }

  /// Reads the body of an action.
  static func action(
    _ name: String, _ reader: inout JSONReader, _ bytes: UnsafeRawBufferPointer, _ limits: RealtimeLimits,
    isMissing: Bool = false
  ) -> Result<ClientAction, RealtimeError> {
    do throws(RealtimeError) {
      var body = RequestBody()
      if !isMissing {
        do throws(JSONError) {
          try body.read(&reader, bytes, name, limits)
        } catch {
          switch error.code {
          case .invalidQuery: throw RealtimeError(.failure, error.detail)
          case .unexpectedType: throw .invalidData("field of a wrong type in the request")
          default: throw error.realtimeError(in: bytes)
          }
        }
      }
      return .success(try body.action(name))
    } catch {
      return .failure(error)
    }
  }

  private static func dataType(of action: String) -> DataType {
    switch action {
    case "p", "o": .node
    case "m", "om": .children
    default: .none
    }
  }

  private mutating func read(
    _ reader: inout JSONReader, _ bytes: UnsafeRawBufferPointer, _ action: String, _ limits: RealtimeLimits
  ) throws(JSONError) {
    if try reader.peekKind() != .object {
      // The body of `unauth` and similar actions may be null, or an object whose fields are ignored.
      try reader.skipValue()
      return
    }
    var pathText: String?
    var dataStart = 0
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "p": pathText = try reader.readString()
      case "d":
        dataStart = reader.offset
        switch Self.dataType(of: action) {
        case .none: try reader.skipValue()
        case .node: data = try reader.readNode(limits: limits)
        case .children: children = try reader.children(.write, limits)
        }
      case "q":
        let start = reader.offset
        query = try reader.querySpec()
        queryText = Array(bytes[start..<reader.offset])
      case "t": tag = try reader.optionalInt()
      case "h": hash = try reader.optionalString()
      case "ch": compoundHash = try Self.compoundHash(&reader)
      case "cred": credential = try reader.optionalString()
      case "noauth":
        if try reader.peekKind() == .bool {
          if try reader.readBool() { override = .nobody }
        } else {
          try reader.skipValue()
        }
      case "authvar":
        let value = try reader.readValue()
        override = value.isNull ? .nobody : .variable(value)
      case "token": token = try reader.optionalString()
      case "c": counters = try Self.counters(&reader)
      default: try reader.skipValue()
      }
    }
    if let pathText {
      let mayBePriority = action == "p" || action == "o"
      do throws(RealtimeError) {
        path = try Path(validating: pathText, allowingPriority: mayBePriority, limits: limits)
      } catch {
        throw JSONError(.invalidQuery, at: 0, detail: error.message)
      }
      if path?.isPriority == true, let data { try reader.check(priority: data, at: dataStart) }
    }
  }

  private static func compoundHash(_ reader: inout JSONReader) throws(JSONError) -> CompoundHashFields? {
    if try reader.consumeNull() { return nil }
    var fields = CompoundHashFields(posts: [], hashes: [])
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "ps": fields.posts = try reader.strings()
      case "hs": fields.hashes = try reader.strings()
      default: try reader.skipValue()
      }
    }
    return fields
  }

  private static func counters(_ reader: inout JSONReader) throws(JSONError) -> [String: Int64] {
    guard try reader.peekKind() == .object else {
      try reader.skipValue()
      return [:]
    }
    var counters: [String: Int64] = [:]
    try reader.beginObject()
    while let key = try reader.nextKey() {
      if try reader.peekKind() == .number, case .int(let value) = try reader.readNumber() {
        counters[key] = value
      } else if try reader.peekKind() != .number {
        try reader.skipValue()
      }
    }
    return counters
  }

  private func requiredPath() throws(RealtimeError) -> Path {
    guard let path else { throw .invalidPath }
    return path
  }

  private func requiredData() throws(RealtimeError) -> Node {
    guard let data else { throw .invalidData("the request has no data") }
    return data
  }

  private func action(_ name: String) throws(RealtimeError) -> ClientAction {
    switch name {
    case "q", "l":
      var listen = ListenRequest(
        path: try requiredPath(), query: query, tag: tag, hash: hash, queryText: queryText)
      if let compoundHash {
        guard compoundHash.hashes.count == compoundHash.posts.count + 1 else {
          throw .invalidData("a compound hash needs one hash more than posts")
        }
        listen.compoundHash = compoundHash
      }
      return .listen(listen)
    case "n", "u": return .unlisten(path: try requiredPath(), query: query, tag: tag)
    case "g": return .get(path: try requiredPath(), query: query)
    case "p": return .put(path: try requiredPath(), data: try requiredData(), hash: hash)
    case "m": return .merge(path: try requiredPath(), children: children)
    case "o": return .onDisconnectPut(path: try requiredPath(), data: try requiredData())
    case "om": return .onDisconnectMerge(path: try requiredPath(), children: children)
    case "oc": return .onDisconnectCancel(path: try requiredPath())
    case "auth", "gauth":
      guard let credential else { throw RealtimeError(.invalidToken, "Could not parse auth token.") }
      return .authenticate(
        AuthenticateRequest(credential: credential, isOpaque: name == "gauth", override: override))
    case "unauth": return .unauthenticate
    case "appcheck": return .appCheck(token: token ?? "")
    case "unappeck", "unappcheck": return .dropAppCheck
    case "s": return .stats(counters)
    default: return .unknown(name)
    }
  }
}
