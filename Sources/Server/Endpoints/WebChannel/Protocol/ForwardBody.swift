// The body of a forward POST: messages with their numbers, and in the handshake the headers that a browser could not
// send as such without asking for permission first.
//
// Message i of a body has the number `ofs` + i. Numbers count from 0 over the whole session, so a message that comes
// again, or out of order, is known for what it is.

import NIOCore

/// What one POST brings.
struct ForwardBody: Equatable {
  /// A message. Without bytes it only takes up its number: the client could not encode it.
  struct Message: Equatable {
    var number: Int
    var bytes: ByteBuffer?
  }

  /// In the order of their numbers.
  var messages: [Message] = []
  /// The block of headers, lines of `Name:Value`; nil if there is none.
  var headers: String?

  /// Reads a body.
  /// - Throws: a refusal with status 400 that says what is wrong.
  init(_ body: ByteBuffer, limits: WebChannelLimits) throws(WebChannelRefusal) {
    guard let form = FormFields(body, limit: 4 * limits.maximumMessages + 16) else {
      throw .malformed("The body is not a form of at most \(4 * limits.maximumMessages + 16) fields.")
    }
    headers = form["headers"]
    let count = try Self.number(form["count"], "count") ?? 0
    let offset = try Self.number(form["ofs"], "ofs") ?? 0
    guard count <= limits.maximumMessages else {
      throw .malformed("A request brings at most \(limits.maximumMessages) messages, not \(count).")
    }
    var entries: [Int: ByteBuffer?] = [:]
    for field in form.fields where field.name.hasPrefix("req") {
      guard let (index, key) = Self.entry(field.name) else {
        throw .malformed("'\(field.name.prefix(40))' names no message: the form is req0___data__.")
      }
      if key == "__data__" {
        entries[index] = .some(field.value)
      } else if entries[index] == nil {
        entries[index] = .some(nil)
      }
    }
    guard entries.count <= count else {
      throw .malformed("The request says that it brings \(count) messages, and brings \(entries.count).")
    }
    // A message without any member leaves nothing in the body but its share of the count.
    for index in 0..<count where entries.count < count && entries[index] == nil {
      entries[index] = .some(nil)
    }
    messages = entries.sorted { $0.key < $1.key }.map { Message(number: offset + $0.key, bytes: $0.value) }
  }

  private static func number(_ text: String?, _ name: String) throws(WebChannelRefusal) -> Int? {
    guard let text else { return nil }
    guard let number = Int(text), (0...1 << 40).contains(number) else {
      throw .malformed("'\(name)' must be a whole number from 0, not '\(text.prefix(40))'.")
    }
    return number
  }

  /// The parts of a name such as `req12___data__`: 12 and `__data__`.
  private static func entry(_ name: String) -> (index: Int, key: Substring)? {
    let rest = name.dropFirst(3)
    guard let underscore = rest.firstIndex(of: "_"), let index = Int(rest[..<underscore]),
      (0...1 << 40).contains(index)
    else { return nil }
    return (index, rest[rest.index(after: underscore)...])
  }
}

/// Why a request is not served: the status, and a text for whoever looks at it.
struct WebChannelRefusal: Error, Equatable {
  var status: Int
  var text: String

  /// A request that cannot be read.
  static func malformed(_ text: String) -> WebChannelRefusal { WebChannelRefusal(status: 400, text: text) }
  /// Clients look for these words, but not at the beginning: see closure's channelrequest.js.
  static let unknownSession = WebChannelRefusal(
    status: 400, text: "Error: Unknown SID. The session has ended or was never opened here.")
  /// There is no room.
  static func overloaded(_ text: String) -> WebChannelRefusal { WebChannelRefusal(status: 503, text: text) }
}
