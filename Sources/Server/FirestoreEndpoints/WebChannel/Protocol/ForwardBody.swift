// The body of a forward POST, by which a WebChannel client sends numbered messages. In a handshake it also contains
// HTTP headers. They are in the body because a browser would need a CORS preflight request to send them as headers.
//
// Message i of a body has the number `ofs` + i. Numbers count from 0 over the complete session. Thus the server
// recognizes repeated and reordered messages.

import NIOCore

/// The decoded body of one forward POST.
struct ForwardBody: Equatable {
  /// A message. It has no bytes if the client could not encode it; its number is used nevertheless.
  struct Message: Equatable {
    var number: Int
    var bytes: ByteBuffer?
  }

  /// The messages, sorted by number.
  var messages: [Message] = []
  /// HTTP headers as lines of `Name:Value`; nil if absent.
  var headers: String?

  /// Parses a body.
  /// - Throws: an error with status 400 that describes the defect.
  init(_ body: ByteBuffer, limits: WebChannelLimits) throws(WebChannelError) {
    guard let form = FormFields(body, limit: 4 * limits.maximumMessages + 16) else {
      throw .malformed("The body is not a form of at most \(4 * limits.maximumMessages + 16) fields.")
    }
    headers = form["headers"]
    let count = try Self.number(form["count"], "count") ?? 0
    let offset = try Self.number(form["ofs"], "ofs") ?? 0
    guard count <= limits.maximumMessages else {
      throw .malformed("A request may contain at most \(limits.maximumMessages) messages, not \(count).")
    }
    var entries: [Int: ByteBuffer?] = [:]
    for field in form.fields where field.name.hasPrefix("req") {
      guard let (index, key) = Self.entry(field.name) else {
        throw .malformed("'\(field.name.prefix(40))' does not name a message: the form is req0___data__.")
      }
      if key == "__data__" {
        entries[index] = .some(field.value)
      } else if entries[index] == nil {
        entries[index] = .some(nil)
      }
    }
    guard entries.count <= count else {
      throw .malformed("The request announces \(count) messages, but contains \(entries.count).")
    }
    // A message without members occurs in the body only in `count`.
    for index in 0..<count where entries.count < count && entries[index] == nil {
      entries[index] = .some(nil)
    }
    messages = entries.sorted { $0.key < $1.key }.map { Message(number: offset + $0.key, bytes: $0.value) }
  }

  private static func number(_ string: String?, _ name: String) throws(WebChannelError) -> Int? {
    guard let string else { return nil }
    guard let number = Int(string), (0...1 << 40).contains(number) else {
      throw .malformed("'\(name)' must be a whole number from 0, not '\(string.prefix(40))'.")
    }
    return number
  }

  /// Splits a field name such as `req12___data__` into the index 12 and the key `__data__`.
  private static func entry(_ name: String) -> (index: Int, key: Substring)? {
    let rest = name.dropFirst(3)
    guard let underscore = rest.firstIndex(of: "_"), let index = Int(rest[..<underscore]),
      (0...1 << 40).contains(index)
    else { return nil }
    return (index, rest[rest.index(after: underscore)...])
  }
}

/// The error of a request that is rejected: an HTTP status, and a message for developers.
struct WebChannelError: Error, Equatable {
  /// The HTTP status code.
  var status: Int
  var message: String

  /// Returns the error of a malformed request.
  static func malformed(_ message: String) -> WebChannelError {
    WebChannelError(status: 400, message: message)
  }
  /// The error of a request that names no open session.
  ///
  /// Clients search for "Unknown SID" at an index above 0, so the message begins with other words: see closure-library,
  /// channelrequest.js.
  static let unknownSession = WebChannelError(
    status: 400, message: "Error: Unknown SID. The session has ended or was never opened here.")
  /// Returns the error of a request that exceeds the server's capacity.
  static func overloaded(_ message: String) -> WebChannelError {
    WebChannelError(status: 503, message: message)
  }
}
