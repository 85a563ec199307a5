// Reads the messages of a client. One pass converts the bytes to a request with its nodes.
//
// Reading a request with a known number never throws. A malformed request becomes ``ClientAction/invalid``, so that the
// server responds with an error and the connection stays open. Only bytes without a readable number throw.

import JSON
public import RealtimeModel

extension ClientMessage {
  /// Reads a message from its bytes.
  ///
  /// - Throws: ``WireError`` if the message is malformed and has no readable request number.
  public init(
    json bytes: UnsafeRawBufferPointer, limits: RealtimeLimits = .standard
  ) throws(WireError) {
    do throws(JSONError) {
      self = try Self.read(bytes, limits)
    } catch {
      // The malformed part may be a request's body before its number.
      guard error.code != .unexpectedType, let number = Self.requestNumber(in: bytes),
        let message = try? Self.read(bytes, limits, number)
      else { throw WireError(error) }
      self = message
    }
  }

  /// The number of a request, even if the request is malformed. The number is also found in an incomplete message if it
  /// precedes the missing part.
  public static func requestNumber(in bytes: UnsafeRawBufferPointer) -> Int64? {
    var number = RequestNumberScanner()
    number.scan(bytes)
    return number.value
  }

  /// - Parameter number: the number of the request, if it is known already.
  private static func read(
    _ bytes: UnsafeRawBufferPointer, _ limits: RealtimeLimits, _ number: Int64? = nil
  ) throws(JSONError) -> ClientMessage {
    var reader = try JSONReader(unsafeBytes: bytes, limits: limits.json)
    var type = number == nil ? nil : "d"
    var skippedContent: Int?
    var found: ClientMessage?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "t": type = try reader.readString()
      case "d":
        if let type {
          var isBroken = false
          let message = try body(type, number, &reader, bytes, limits, &isBroken)
          if isBroken { return message }
          found = message
        } else {
          skippedContent = reader.offset
          try reader.skipValue()
        }
      default: try reader.skipValue()
      }
    }
    try reader.finish()
    if found == nil, let type {
      if let skippedContent {
        var isBroken = false
        reader.rewind(to: skippedContent)
        found = try body(type, number, &reader, bytes, limits, &isBroken)
      } else if type == "c" {
        found = .control(.unknown(""))
      }
    }
    guard let found else { throw JSONError(.unexpectedType, at: 0) }
    return found
  }

  /// Reads the message's inner object, `d`. After an error in it, sets `isBroken`, because the message cannot be read
  /// any further.
  private static func body(
    _ type: String, _ number: Int64?, _ reader: inout JSONReader, _ bytes: UnsafeRawBufferPointer,
    _ limits: RealtimeLimits, _ isBroken: inout Bool
  ) throws(JSONError) -> ClientMessage {
    switch type {
    case "d": return .request(try request(number, &reader, bytes, limits, &isBroken))
    case "c": return .control(try control(&reader))
    default: throw JSONError(.unexpectedType, at: reader.offset)
    }
  }

  private static func control(_ reader: inout JSONReader) throws(JSONError) -> ClientControl {
    var name = ""
    try reader.beginObject()
    while let key = try reader.nextKey() {
      if key == "t" { name = try reader.readString() } else { try reader.skipValue() }
    }
    switch name {
    case "p": return .ping
    case "a": return .switchAcknowledged
    case "n": return .endOfTransmission
    default: return .unknown(name)
    }
  }

  private static func request(
    _ number: Int64?, _ reader: inout JSONReader, _ bytes: UnsafeRawBufferPointer, _ limits: RealtimeLimits,
    _ isBroken: inout Bool
  ) throws(JSONError) -> ClientRequest {
    let start = reader.offset
    var number = number
    var action: String?
    var body: Int?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "r": number = try reader.optionalInt()
      case "a": action = try reader.readString()
      case "b":
        // In the usual order of fields (`r`, `a`, `b`) number and action are known here. The C++ SDK's order is `a`,
        // `b`, `r`.
        if let number, let action {
          switch RequestBody.action(action, &reader, bytes, limits) {
          case .success(let value):
            while try reader.nextKey() != nil { try reader.skipValue() }
            return ClientRequest(number, value)
          case .failure(let error):
            isBroken = true
            return ClientRequest(number, .invalid(action, error))
          }
        }
        body = reader.offset
        try reader.skipValue()
      default: try reader.skipValue()
      }
    }
    guard let number else { throw JSONError(.unexpectedType, at: start) }
    guard let action else { return ClientRequest(number, .unknown("")) }
    let end = reader.offset
    if let body { reader.rewind(to: body) }
    let parsed = RequestBody.action(action, &reader, bytes, limits, isMissing: body == nil)
    reader.rewind(to: end)
    switch parsed {
    case .success(let value): return ClientRequest(number, value)
    case .failure(let error): return ClientRequest(number, .invalid(action, error))
    }
  }
}
