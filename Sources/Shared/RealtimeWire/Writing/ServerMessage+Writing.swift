// Writes the messages of a server. Every control message has the member `d`, because one of Firebase's clients ignores
// control messages without it. The paths of pushes have no leading slash.

public import JSON
public import RealtimeModel

extension ServerMessage {
  /// The message as JSON, before it is split into frames.
  public func json() -> [UInt8] {
    switch self {
    case .control(let control): control.json()
    case .response(let response): response.json()
    case .push(let push): push.json()
    }
  }
}

extension ServerControl {
  /// The message as JSON.
  public func json() -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("t")
    writer.string("c")
    writer.key("d")
    writer.beginObject()
    writer.key("t")
    switch self {
    case .hello(let hello):
      writer.string("h")
      writer.key("d")
      writer.beginObject()
      writer.key("ts")
      writer.int(hello.timestamp)
      writer.key("v")
      writer.string(hello.version)
      writer.key("h")
      writer.string(hello.host)
      writer.key("s")
      writer.string(hello.sessionID)
      writer.endObject()
    case .reset(let host): writer.control("r", host)
    case .shutdown(let reason): writer.control("s", reason)
    case .error(let text): writer.control("e", text)
    case .pong: writer.control("o")
    case .switchAcknowledged: writer.control("a")
    case .endOfTransmission: writer.control("n")
    case .unknown(let name): writer.control(name)
    }
    writer.endObject()
    writer.endObject()
    return writer.bytes
  }
}

extension ServerResponse {
  /// The message as JSON.
  public func json() -> [UInt8] {
    Self.json(number, status) { $0.node(payload) }
  }

  /// A response as JSON with the payload that `writePayload` writes, for payloads that are not nodes.
  public static func json(
    _ number: Int64, _ status: RealtimeError.Status, _ writePayload: (inout JSONWriter) -> Void
  ) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginData()
    writer.key("r")
    writer.int(number)
    writer.key("b")
    writer.beginObject()
    writer.key("s")
    writer.string(status.rawValue)
    writer.key("d")
    writePayload(&writer)
    writer.endObject()
    writer.endData()
    return writer.bytes
  }
}

extension ServerPush {
  /// The message as JSON.
  public func json() -> [UInt8] {
    switch self {
    case .data(let path, let data, let tag): UntaggedPush(data: data, at: path).message(tag: tag)
    case .merge(let path, let children, let tag): UntaggedPush(merge: children, at: path).message(tag: tag)
    case .rangeMerge(let path, let ranges, let tag): UntaggedPush(ranges: ranges, at: path).message(tag: tag)
    case .cancel(let path, let queryText):
      Self.message("c") { (writer: inout JSONWriter) in
        writer.key("p")
        writer.string(path.description)
        if let queryText {
          writer.key("q")
          writer.beginArray()
          writer.raw(queryText)
          writer.endArray()
        }
      }
    case .authRevoked(let error): Self.message("ac") { $0.status(error) }
    case .appCheckRevoked(let error): Self.message("apc") { $0.status(error) }
    case .securityDebug(let text):
      Self.message("sd") { (writer: inout JSONWriter) in
        writer.key("msg")
        writer.string(text)
      }
    case .unknown(let name): Self.message(name) { _ in }
    }
  }

  private static func message(_ action: String, _ write: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginData()
    writer.key("a")
    writer.string(action)
    writer.key("b")
    writer.beginObject()
    write(&writer)
    writer.endObject()
    writer.endData()
    return writer.bytes
  }
}

extension JSONWriter {
  /// Opens a data message's envelope and the object in it.
  mutating func beginData() {
    beginObject()
    key("t")
    string("d")
    key("d")
    beginObject()
  }

  /// Closes the two objects that ``beginData()`` opened.
  mutating func endData() {
    endObject()
    endObject()
  }

  fileprivate mutating func control(_ name: String, _ payload: String? = nil) {
    string(name)
    key("d")
    if let payload {
      string(payload)
    } else {
      beginObject()
      endObject()
    }
  }

  fileprivate mutating func status(_ error: RealtimeError) {
    key("s")
    string(error.status.rawValue)
    key("d")
    string(error.message)
  }
}
