// A raw socket is a minimal WebSocket client. It masks frames, assembles messages from the announced number
// of frames, and reports every frame as received.

import NIOCore
import Ports
import RealtimeModel
import RealtimeWire
import Testing

/// A client of the Realtime Database's protocol v5 over a raw connection.
final class RawSocket {
  struct Frame: Equatable {
    var opcode: UInt8
    var payload: [UInt8]
  }

  let client: RawClient
  let session: String
  let hello: ServerHello
  private var assembler = MessageAssembler(maximumBytes: 1 << 30)

  private init(_ client: RawClient, _ hello: ServerHello) {
    self.client = client
    self.hello = hello
    session = hello.sessionID
  }

  /// Opens a socket and reads the server's hello message.
  static func open(_ server: RealtimeTestServer, _ parameters: String = "v=5&ns=demo") async throws
    -> RawSocket
  {
    try await open(port: server.port.port, host: server.host, parameters)
  }

  static func open(port: Int, host: String, _ parameters: String) async throws -> RawSocket {
    let client = try await RawClient.connect(port)
    try await client.send(request(host, parameters))
    let head = try await client.read(through: "\r\n\r\n")
    #expect(head.hasPrefix("HTTP/1.1 101 "), "\(head)")
    #expect(head.lowercased().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="))
    let frame = try await readFrame(client)
    let message = try frame.payload.withUnsafeBytes { try ServerMessage(json: $0) }
    guard case .control(.hello(let hello)) = message else {
      throw WireError.notAMessage(String(decoding: frame.payload, as: UTF8.self))
    }
    return RawSocket(client, hello)
  }

  static func request(_ server: RealtimeTestServer, _ parameters: String) -> String {
    request(server.host, parameters)
  }

  private static func request(_ host: String, _ parameters: String) -> String {
    "GET /.ws?\(parameters) HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
  }

  // MARK: Frames

  static func frame(_ opcode: UInt8, _ payload: [UInt8], fin: Bool = true, mask: [UInt8] = [1, 2, 3, 4])
    -> [UInt8]
  {
    var bytes: [UInt8] = [(fin ? 0x80 : 0) | opcode]
    switch payload.count {
    case ..<126: bytes.append(0x80 | UInt8(payload.count))
    case ..<65_536: bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
    default:
      bytes.append(0x80 | 127)
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
    }
    bytes += mask
    // A mask of zeros does not change the payload, which saves time if it is large.
    bytes += mask == [0, 0, 0, 0] ? payload : payload.enumerated().map { $1 ^ mask[$0 % 4] }
    return bytes
  }

  static func readFrame(_ client: RawClient) async throws -> Frame {
    let head = try await client.read(2)
    #expect(head[0] & 0x80 != 0 && head[1] & 0x80 == 0, "a server's frames are whole and not masked")
    var length = Int(head[1])
    if length == 126 {
      length = try await client.read(2).reduce(0) { $0 << 8 | Int($1) }
    } else if length == 127 {
      length = try await client.read(8).reduce(0) { $0 << 8 | Int($1) }
    }
    return Frame(opcode: head[0] & 15, payload: try await client.read(length))
  }

  func readFrame() async throws -> Frame { try await Self.readFrame(client) }

  func sendFrame(_ opcode: UInt8, _ payload: [UInt8], fin: Bool = true) async throws {
    let mask: [UInt8] = payload.count > 1 << 20 ? [0, 0, 0, 0] : [1, 2, 3, 4]
    try await client.send(Self.frame(opcode, payload, fin: fin, mask: mask))
  }

  // MARK: Messages

  /// Sends a string as one frame.
  func send(text: String) async throws { try await sendFrame(1, Array(text.utf8)) }

  /// Sends a data message. `data` is its content without the envelope.
  func send(_ data: String) async throws { try await send(text: "{\"t\":\"d\",\"d\":\(data)}") }

  /// Returns the next message as a string, assembled from its frames.
  func text() async throws -> String {
    while true {
      let frame = try await readFrame()
      if frame.opcode == 8 { throw RawClient.Failure.closed }
      guard frame.opcode == 1 else { continue }
      switch frame.payload.withUnsafeBytes({ assembler.receive($0) }) {
      case .message: return String(decoding: frame.payload, as: UTF8.self)
      case .assembled(let bytes): return String(decoding: bytes, as: UTF8.self)
      case .nothing, .oversized: continue
      }
    }
  }

  /// Returns the content of the next data message without the envelope.
  func next() async throws -> String {
    let text = try await text()
    let prefix = "{\"t\":\"d\",\"d\":"
    guard text.hasPrefix(prefix) else { throw WireError.notAMessage(text) }
    return String(text.dropFirst(prefix.count).dropLast())
  }

  /// Sends requests and expects exactly the given messages, in this order.
  func play(
    _ requests: [String], expect expected: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    for request in requests { try await send(request) }
    for message in expected {
      #expect(try await next() == message, sourceLocation: sourceLocation)
    }
  }

  func close() async { await client.close() }
}
