// A WebChannel operation, parsed from the method and the query parameters of an HTTP request.

import NIOCore
import Ports

/// The operation of one HTTP request.
enum WebChannelOperation: Equatable {
  /// Opens a session.
  case handshake(headers: String?, wantsSessionHeader: Bool)
  /// Sends messages, and optionally acknowledges all arrays up to a number.
  case forward(session: String, acknowledged: Int?)
  /// Opens a back channel: the client receives the server's numbered messages (arrays) in the response.
  case back(session: String, BackChannelRequest)
  /// Ends a session.
  case terminate(session: String)

  /// Parses a request.
  /// - Throws: an error with status 400 that describes the defect.
  init(isPost: Bool, _ form: RequestTarget) throws(WebChannelError) {
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

  private init(post form: RequestTarget, session: String?) throws(WebChannelError) {
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

  fileprivate static func acknowledged(_ form: RequestTarget) throws(WebChannelError) -> Int? {
    guard let string = form["AID"] else { return nil }
    guard let id = Int(string), id >= -1 else {
      throw .malformed("AID must be the number of the last array received, not '\(string.prefix(40))'.")
    }
    return id
  }
}

/// A request that opens a back channel.
struct BackChannelRequest: Equatable {
  /// The number of the last array that the client received.
  var acknowledged: Int
  /// Whether the response stays open for later arrays. A polling response ends after the first arrays.
  var isStreaming: Bool
  /// The maximum time that a polling request waits for the first array; nil for the default.
  var timeout: TimeAmount?
  /// Whether the open response prevents other responses on the connection, as in HTTP/1.1.
  var occupiesConnection = false
  /// Whether the connection may be the last one that the client had for other requests.
  var occupiesLastConnection = false

  init(acknowledged: Int, isStreaming: Bool, timeout: TimeAmount? = nil) {
    self.acknowledged = acknowledged
    self.isStreaming = isStreaming
    self.timeout = timeout
  }

  fileprivate init(_ form: RequestTarget) throws(WebChannelError) {
    guard let acknowledged = try WebChannelOperation.acknowledged(form) else {
      throw .malformed("A back channel must have AID, the number of the last array received.")
    }
    self.acknowledged = acknowledged
    isStreaming = form["CI"] != "1"
    guard let string = form["TO"] else { return }
    guard let milliseconds = Int64(string), (0...86_400_000).contains(milliseconds) else {
      throw .malformed("TO must be a number of milliseconds up to a day, not '\(string.prefix(40))'.")
    }
    timeout = .milliseconds(milliseconds)
  }
}
