// What a WebChannel request asks for, read from its method and its parameters.

import NIOCore

/// The kinds of requests.
enum WebChannelQuery: Equatable {
  /// Opens a session.
  case handshake(headers: String?, wantsSessionHeader: Bool)
  /// Brings messages, and acknowledges answers up to a number if it names one.
  case forward(session: String, acknowledged: Int?)
  /// Waits for answers.
  case back(session: String, BackChannelRequest)
  /// Ends a session.
  case terminate(session: String)

  /// Reads a request.
  /// - Throws: a refusal with status 400 that says what is wrong.
  init(isPost: Bool, _ form: RequestTarget) throws(WebChannelRefusal) {
    if let version = form["VER"], version != "8" {
      throw .malformed("This server speaks version 8 of WebChannel, not '\(version.prefix(20))'.")
    }
    let session = form["SID"].flatMap { $0.isEmpty || $0 == "null" ? nil : $0 }
    if form["TYPE"] == "terminate" {
      guard let session else { throw .malformed("A request of TYPE=terminate must name its session by SID.") }
      self = .terminate(session: session)
    } else if isPost {
      try self.init(post: form, session: session)
    } else {
      guard form["RID"] == "rpc", let session else {
        throw .malformed("A GET must have RID=rpc and name its session by SID, or be of TYPE=terminate.")
      }
      self = .back(session: session, try BackChannelRequest(form))
    }
  }

  private init(post form: RequestTarget, session: String?) throws(WebChannelRefusal) {
    guard let rid = form["RID"], Int(rid) != nil else {
      throw .malformed("A POST must have a number as RID.")
    }
    if let session {
      self = .forward(session: session, acknowledged: try Self.acknowledged(form))
    } else {
      guard form["VER"] != nil else { throw .malformed("A handshake must have VER=8.") }
      self = .handshake(
        headers: form["$httpHeaders"], wantsSessionHeader: form["X-HTTP-Session-Id"] != nil)
    }
  }

  fileprivate static func acknowledged(_ form: RequestTarget) throws(WebChannelRefusal) -> Int? {
    guard let text = form["AID"] else { return nil }
    guard let id = Int(text), id >= -1 else {
      throw .malformed("AID must be the number of the last array received, not '\(text.prefix(40))'.")
    }
    return id
  }
}

/// A request for answers.
struct BackChannelRequest: Equatable {
  /// The last array that the client has.
  var acknowledged: Int
  /// Whether answers are to be sent as they come; else the first ones end the response.
  var isStreaming: Bool
  /// How long a request that does not stream may wait for the first answer.
  var timeout: TimeAmount?

  init(acknowledged: Int, isStreaming: Bool, timeout: TimeAmount? = nil) {
    self.acknowledged = acknowledged
    self.isStreaming = isStreaming
    self.timeout = timeout
  }

  fileprivate init(_ form: RequestTarget) throws(WebChannelRefusal) {
    guard let acknowledged = try WebChannelQuery.acknowledged(form) else {
      throw .malformed("A back channel must have AID, the number of the last array received.")
    }
    self.acknowledged = acknowledged
    isStreaming = form["CI"] != "1"
    guard let text = form["TO"] else { return }
    guard let milliseconds = Int64(text), (0...86_400_000).contains(milliseconds) else {
      throw .malformed("TO must be a number of milliseconds up to a day, not '\(text.prefix(40))'.")
    }
    timeout = .milliseconds(milliseconds)
  }
}
