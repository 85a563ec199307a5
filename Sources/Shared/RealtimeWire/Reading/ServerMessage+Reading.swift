// Reads the messages of a server. Data is not validated. Unknown messages are kept as such, since newer servers may
// send messages that this client does not know.

import JSON
import RealtimeModel

extension ServerMessage {
  /// Reads a message from its bytes.
  ///
  /// - Throws: ``WireError`` if it is not a message of the protocol.
  public init(json bytes: UnsafeRawBufferPointer) throws(WireError) {
    do throws(JSONError) {
      self = try Self.read(bytes)
    } catch {
      throw WireError(error)
    }
  }

  private static func read(_ bytes: UnsafeRawBufferPointer) throws(JSONError) -> ServerMessage {
    var reader = try JSONReader(unsafeBytes: bytes)
    var type = ""
    var contentStart: Int?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "t": type = try reader.readString()
      case "d":
        contentStart = reader.offset
        try reader.skipValue()
      default: try reader.skipValue()
      }
    }
    try reader.finish()
    guard let contentStart else { throw JSONError(.unexpectedType, at: 0) }
    reader.rewind(to: contentStart)
    switch type {
    case "c": return .control(try control(&reader))
    case "d": return try data(&reader, bytes)
    default: throw JSONError(.unexpectedType, at: contentStart)
    }
  }

  // MARK: Control messages

  private static func control(_ reader: inout JSONReader) throws(JSONError) -> ServerControl {
    var name = ""
    var payload = JSONValue.null
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "t": name = try reader.readString()
      case "d": payload = try reader.readValue()
      default: try reader.skipValue()
      }
    }
    switch name {
    case "h":
      return .hello(
        ServerHello(
          timestamp: payload["ts"]?.double.map { Int64($0.clamped()) } ?? 0, host: payload["h"]?.string ?? "",
          sessionID: payload["s"]?.string ?? "", version: payload["v"]?.string ?? ""))
    case "r": return .reset(host: payload.string ?? "")
    case "s": return .shutdown(payload.string ?? "")
    case "e": return .error(payload.string ?? "")
    case "o": return .pong
    case "a": return .switchAcknowledged
    case "n": return .endOfTransmission
    default: return .unknown(name)
    }
  }

  // MARK: Data messages

  private static func data(
    _ reader: inout JSONReader, _ bytes: UnsafeRawBufferPointer
  ) throws(JSONError) -> ServerMessage {
    let start = reader.offset
    var number: Int64?
    var action: String?
    var body: Int?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "r": number = try reader.optionalInt()
      case "a": action = try reader.optionalString()
      case "b":
        body = reader.offset
        try reader.skipValue()
      default: try reader.skipValue()
      }
    }
    guard let body else { throw JSONError(.unexpectedType, at: start) }
    reader.rewind(to: body)
    if let number { return .response(try response(number, &reader)) }
    if let action { return .push(try push(action, &reader, bytes)) }
    throw JSONError(.unexpectedType, at: start)
  }

  private static func response(
    _ number: Int64, _ reader: inout JSONReader
  ) throws(JSONError) -> ServerResponse {
    var response = ServerResponse(number, RealtimeError.Status(rawValue: ""), .empty)
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "s": response.status = RealtimeError.Status(rawValue: try reader.readString())
      case "d": response.payload = try reader.readNode(.read)
      default: try reader.skipValue()
      }
    }
    return response
  }

  private static func push(
    _ action: String, _ reader: inout JSONReader, _ bytes: UnsafeRawBufferPointer
  ) throws(JSONError) -> ServerPush {
    var path = Path.root
    var data = Node.empty
    var children: [(Path, Node)] = []
    var ranges: [RangeMergeFields] = []
    var tag: Int64?
    var queryText: [UInt8]?
    var status = ""
    var text = ""
    guard try reader.peekKind() == .object else { return .unknown(action) }
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch (key, action) {
      case ("p", _):
        let text = try reader.readString()
        path = try reader.path(text)
      case ("t", _): tag = try reader.optionalInt()
      case ("d", "d"): data = try reader.readNode(.read)
      case ("d", "m"): children = try reader.children(.read)
      case ("d", "rm"): ranges = try Self.ranges(&reader)
      case ("d", "ac"), ("d", "apc"), ("msg", "sd"): text = try reader.optionalString() ?? ""
      case ("s", _): status = try reader.optionalString() ?? ""
      case ("q", "c"): queryText = try firstElement(&reader, bytes)
      default: try reader.skipValue()
      }
    }
    switch action {
    case "d": return .data(path: path, data: data, tag: tag)
    case "m": return .merge(path: path, children: children, tag: tag)
    case "rm": return .rangeMerge(path: path, ranges: ranges, tag: tag)
    case "c": return .cancel(path: path, queryText: queryText)
    case "ac": return .authRevoked(RealtimeError(RealtimeError.Status(rawValue: status), text))
    case "apc": return .appCheckRevoked(RealtimeError(RealtimeError.Status(rawValue: status), text))
    case "sd": return .securityDebug(text)
    default: return .unknown(action)
    }
  }

  private static func ranges(_ reader: inout JSONReader) throws(JSONError) -> [RangeMergeFields] {
    var ranges: [RangeMergeFields] = []
    try reader.beginArray()
    while try reader.nextElement() {
      var range = RangeMergeFields(start: nil, end: nil, data: .empty)
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "s": range.start = try reader.optionalPath()
        case "e": range.end = try reader.optionalPath()
        case "m": range.data = try reader.readNode(.read)
        default: try reader.skipValue()
        }
      }
      ranges.append(range)
    }
    return ranges
  }

  /// The bytes of the first element of an array, or of the value itself if it is not an array.
  private static func firstElement(
    _ reader: inout JSONReader, _ bytes: UnsafeRawBufferPointer
  ) throws(JSONError) -> [UInt8]? {
    if try reader.consumeNull() { return nil }
    guard try reader.peekKind() == .array else { return Array(bytes[try reader.skipValue()]) }
    var first: [UInt8]?
    try reader.beginArray()
    while try reader.nextElement() {
      let range = try reader.skipValue()
      if first == nil { first = Array(bytes[range]) }
    }
    return first
  }
}

extension Double {
  /// The value, clamped to the range of 64-bit integers.
  fileprivate func clamped() -> Double { min(max(self, -9e18), 9e18) }
}
