// A WebChannel test client uses plain sockets, with one connection for each request. It exposes each response
// unchanged.
//
// WebChannel is the HTTP protocol of the Firestore web SDK. A session starts with a handshake. The client
// then sends messages in POST requests (the forward channel). The server sends messages in a long streaming
// response to a GET request (the back channel).

import Foundation
import JSON
import NIOCore
import NIOSSL
import RealtimeModel
import Testing

/// One complete HTTP response.
struct ChannelReply {
  var status: Int
  var headers: [String: String]
  var body: ByteBuffer

  var text: String { String(buffer: body) }

  var arrays: [ReceivedArray] { ReceivedArray.all(body) }
}

/// A client of one WebChannel session of a streaming method, `Listen` or `Write`.
struct WebChannelTestClient {
  static let database = "projects/demo-test/databases/(default)"

  let port: Int
  var stream = "Listen"
  var tls: NIOSSLContext?
  var sid = ""
  var headers = "Origin: http://localhost:5000\r\n"

  /// Starts a session: sends the handshake request, which already contains messages.
  static func handshake(
    _ port: Int, _ stream: String, _ messages: [String], headers: String? = nil, query: String = "",
    tls: NIOSSLContext? = nil
  ) async throws -> (client: WebChannelTestClient, reply: ChannelReply) {
    var client = WebChannelTestClient(port: port, stream: stream, tls: tls)
    let block = headers.map { "headers=\(escape($0))&" } ?? ""
    let reply = try await client.post("VER=8&RID=100&CVER=22\(query)&t=1", block + body(messages, from: 0))
    let opening = reply.arrays.first?.payload.array ?? []
    client.sid = opening.count > 1 ? opening[1].string ?? "" : ""
    return (client, reply)
  }

  /// Returns the form body of a POST request with messages. `offset` is the number of the first message
  /// within the session.
  static func body(_ messages: [String], from offset: Int) -> String {
    "count=\(messages.count)" + (messages.isEmpty ? "" : "&ofs=\(offset)")
      + messages.enumerated().map { "&req\($0.offset)___data__=\(escape($0.element))" }.joined()
  }

  /// Returns a message of the Listen method that adds a target for a document.
  static func listen(to path: String, _ target: Int) -> String {
    """
    {"database":"\(database)","addTarget":{"documents":{"documents":["\(database)/documents/\(path)"]},\
    "targetId":\(target)}}
    """
  }

  /// Returns a message of the Write method that writes a document.
  static func set(_ path: String, _ fields: String, token: String = "MA==") -> String {
    """
    {"streamToken":"\(token)","writes":[{"update":{"name":"\(database)/documents/\(path)","fields":\(fields)}}]}
    """
  }

  private static func escape(_ text: String) -> String {
    text.utf8.map { byte in
      let character = Character(Unicode.Scalar(byte))
      return character.isLetter && byte < 0x80 || character.isNumber
        ? String(character) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }.joined()
  }

  // MARK: Requests

  func request(_ method: String, _ query: String, _ body: String = "") async throws -> RawConnection {
    let connection = try await RawConnection.connect(port: port, tls: tls)
    try await connection.send(
      "\(method) /google.firestore.v1.Firestore/\(stream)/channel?\(query) HTTP/1.1\r\nHost: localhost\r\n"
        + "\(headers)Content-Type: application/x-www-form-urlencoded\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    return connection
  }

  func post(_ query: String, _ body: String) async throws -> ChannelReply {
    try await BackChannel(try await request("POST", query, body)).complete()
  }

  /// Sends messages of the session in a POST request.
  func post(_ messages: [String], from offset: Int, acknowledging id: Int? = nil) async throws -> ChannelReply
  {
    let query = "VER=8&SID=\(sid)&RID=\(101 + offset)" + (id.map { "&AID=\($0)" } ?? "") + "&t=1"
    return try await post(query, Self.body(messages, from: offset))
  }

  /// Opens a back channel.
  /// - Parameter timeout: if given, the server ends the response after one batch of messages or after this
  ///   time in milliseconds (long polling).
  func open(after id: Int, polling timeout: Int? = nil) async throws -> BackChannel {
    let kind = timeout.map { "CI=1&TO=\($0)" } ?? "CI=0"
    return BackChannel(
      try await request("GET", "VER=8&RID=rpc&SID=\(sid)&AID=\(id)&\(kind)&TYPE=xmlhttp&t=1"))
  }
}

/// A streaming HTTP response.
final class BackChannel {
  private let connection: RawConnection
  private var bytes = ByteBuffer()
  private var head: (status: Int, headers: [String: String])?
  private var body = ByteBuffer()
  private var queue: [ReceivedArray] = []
  private(set) var hasEnded = false

  init(_ connection: RawConnection) { self.connection = connection }

  func close() async { await connection.close() }

  /// Returns the next array; nil at the end of the response.
  func next() async throws -> ReceivedArray? {
    while queue.isEmpty {
      if hasEnded { return nil }
      try await receive()
      queue += ReceivedArray.consume(&body)
    }
    return queue.removeFirst()
  }

  /// Returns the next array that is not a noop. The server sends noops to keep a back channel open.
  func nextMessage() async throws -> ReceivedArray? {
    while let array = try await next() {
      if array.payload != .array([.string("noop")]) { return array }
    }
    return nil
  }

  /// Returns all arrays up to and including the first one that contains a string.
  func arrays(until text: String) async throws -> [ReceivedArray] {
    var arrays: [ReceivedArray] = []
    while let array = try await next() {
      arrays.append(array)
      if array.text.contains(text) { break }
    }
    return arrays
  }

  /// Returns the status and headers of the response.
  func start() async throws -> (status: Int, headers: [String: String]) {
    while true {
      if let head { return head }
      try await receive()
    }
  }

  /// Returns the complete response.
  func complete() async throws -> ChannelReply {
    while !hasEnded { try await receive() }
    await connection.close()
    return ChannelReply(status: head?.status ?? 0, headers: head?.headers ?? [:], body: body)
  }

  private func receive() async throws {
    switch try await connection.next() {
    case .bytes(let more): bytes.writeImmutableBuffer(more)
    case .closed: hasEnded = true
    }
    if head == nil { readHead() }
    guard let head else { return }
    if head.headers["transfer-encoding"] == "chunked" { readChunks() } else { readSizedBody(head.headers) }
  }

  private func readHead() {
    let text = String(decoding: bytes.readableBytesView, as: UTF8.self)
    guard let end = text.range(of: "\r\n\r\n") else { return }
    let lines = text[..<end.lowerBound].split(separator: "\r\n")
    bytes.moveReaderIndex(forwardBy: text[..<end.upperBound].utf8.count)
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
    }
    head = (Int(lines.first?.split(separator: " ").dropFirst().first ?? "") ?? 0, headers)
  }

  private func readSizedBody(_ headers: [String: String]) {
    let length = Int(headers["content-length"] ?? "") ?? 0
    body.writeImmutableBuffer(bytes)
    bytes.clear()
    if body.writerIndex >= length { hasEnded = true }
  }

  private func readChunks() {
    while !hasEnded, let end = bytes.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
      let line = String(decoding: bytes.readableBytesView[..<end], as: UTF8.self).filter { $0.isHexDigit }
      guard let length = Int(line, radix: 16), bytes.writerIndex >= end + 1 + length + 2 else { return }
      bytes.moveReaderIndex(to: end + 1)
      if let chunk = bytes.readSlice(length: length) { body.writeImmutableBuffer(chunk) }
      bytes.moveReaderIndex(forwardBy: 2)
      if length == 0 { hasEnded = true }
    }
  }
}
