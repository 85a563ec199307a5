// A frame connection is an HTTP/2 connection on which the test writes each frame, also invalid frames, and
// reads the server's frames one by one. It does not answer pings or settings automatically.

import GRPCFraming
import NIOCore
import NIOHPACK

final class FrameConnection {
  /// A frame of the server, with the parts that tests check. WINDOW_UPDATE frames are counted instead.
  enum Frame: Equatable {
    case data(stream: Int, ByteBuffer, end: Bool)
    case headers(stream: Int, HPACKHeaders, end: Bool)
    case reset(stream: Int, code: Int)
    case settings([Int: Int])
    case settingsAck
    case ping([UInt8], ack: Bool)
    case goAway(last: Int, code: Int)
    case other(type: Int)
    case closed
  }

  /// The HTTP/2 error codes that tests use.
  enum Code {
    static let noError = 0
    static let protocolError = 1
    static let streamClosed = 5
    static let refusedStream = 7
    static let enhanceYourCalm = 11
  }

  static let largestStreamID = Int(Int32.max)

  private let connection: RawConnection
  private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
  private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
  private var received = ByteBuffer()
  /// The sum of the server's WINDOW_UPDATE frames for the connection, in bytes.
  private(set) var windowUpdateBytes = 0

  private init(_ connection: RawConnection) { self.connection = connection }

  /// Connects and sends the preface.
  /// - Parameter acknowledgesSettings: whether the client reads and acknowledges the server's settings.
  static func open(port: Int, acknowledgesSettings: Bool = true) async throws -> FrameConnection {
    let this = FrameConnection(try await RawConnection.connect(port: port))
    try await this.connection.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0))
    if acknowledgesSettings {
      try await this.send(frame(4, 1, 0))
      while try await this.next() != .settingsAck {}
    }
    return this
  }

  func send(_ bytes: [UInt8]) async throws { try await connection.send(bytes) }

  func close() async { await connection.close() }

  // MARK: Frames of the client

  static func frame(_ type: UInt8, _ flags: UInt8, _ stream: Int, _ payload: [UInt8] = []) -> [UInt8] {
    var buffer = ByteBuffer()
    buffer.writeInteger(UInt32(payload.count) << 8 | UInt32(type))
    buffer.writeInteger(flags)
    buffer.writeInteger(UInt32(stream))
    buffer.writeBytes(payload)
    return Array(buffer.readableBytesView)
  }

  /// The header fields of a call to the echo service.
  static func callFields(_ method: String, _ additional: [(String, String)] = []) -> [(String, String)] {
    [
      (":method", "POST"), (":path", "/\(EchoPort.service)/\(method)"), (":scheme", "http"),
      (":authority", "localhost"), ("content-type", "application/grpc"), ("te", "trailers"),
    ] + additional
  }

  /// Sends a HEADERS frame, and the message as DATA if there is one.
  func request(
    _ stream: Int, _ fields: [(String, String)], _ message: [UInt8]? = nil, end: Bool = true
  ) async throws {
    var bytes = try headersFrame(stream, fields, end: end && message == nil)
    if let message { bytes += Self.messageFrame(stream, message, end: end) }
    try await send(bytes)
  }

  func headersFrame(_ stream: Int, _ fields: [(String, String)], end: Bool = false) throws -> [UInt8] {
    var block = ByteBuffer()
    try encoder.encode(headers: HPACKHeaders(fields), to: &block)
    return Self.frame(1, end ? 5 : 4, stream, Array(block.readableBytesView))
  }

  static func messageFrame(_ stream: Int, _ message: [UInt8], end: Bool) -> [UInt8] {
    var framed = ByteBuffer()
    framed.writeGRPCMessage(bytes: message)
    return frame(0, end ? 1 : 0, stream, Array(framed.readableBytesView))
  }

  /// Increases the flow-control windows of the connection and of a stream, so that the server may send more
  /// bytes.
  func openWindows(_ stream: Int, by bytes: UInt32) async throws {
    var increment = ByteBuffer()
    increment.writeInteger(bytes)
    let payload = Array(increment.readableBytesView)
    try await send(Self.frame(8, 0, 0, payload) + Self.frame(8, 0, stream, payload))
  }

  func acknowledge(_ ping: [UInt8]) async throws { try await send(Self.frame(6, 1, 0, ping)) }

  // MARK: Frames of the server

  /// Returns the next frame other than WINDOW_UPDATE.
  func next() async throws -> Frame {
    while true {
      if let frame = try nextBufferedFrame() {
        if frame == .other(type: 8) { continue }
        return frame
      }
      guard case .bytes(var bytes) = try await connection.next() else { return .closed }
      received.writeBuffer(&bytes)
    }
  }

  /// Returns the frames up to the first match, or to the end of the connection.
  func frames(until isLast: (Frame) -> Bool) async throws -> [Frame] {
    var frames: [Frame] = []
    while true {
      let frame = try await next()
      frames.append(frame)
      if frame == .closed || isLast(frame) { return frames }
    }
  }

  /// Returns the status of a call; nil if the stream ends without a status.
  func status(of stream: Int) async throws -> Int? {
    let frames = try await frames {
      switch $0 {
      case .headers(stream, _, true), .reset(stream, _): true
      default: false
      }
    }
    guard case .headers(_, let fields, _)? = frames.last else { return nil }
    return fields.first(name: "grpc-status").flatMap { Int($0) }
  }

  private func nextBufferedFrame() throws -> Frame? {
    guard let start: UInt32 = received.getInteger(at: received.readerIndex) else { return nil }
    let length = Int(start >> 8)
    guard received.readableBytes >= 9 + length else { return nil }
    received.moveReaderIndex(forwardBy: 4)
    let flags: UInt8 = received.readInteger() ?? 0
    let stream = Int(received.readInteger(as: UInt32.self) ?? 0)
    var payload = received.readSlice(length: length) ?? ByteBuffer()
    let isEnd = flags & 1 != 0
    switch start & 0xff {
    case 0: return .data(stream: stream, payload, end: isEnd)
    case 1: return .headers(stream: stream, try decoder.decodeHeaders(from: &payload), end: isEnd)
    case 3: return .reset(stream: stream, code: Int(payload.readInteger(as: UInt32.self) ?? 0))
    case 4:
      if isEnd { return .settingsAck }
      var settings: [Int: Int] = [:]
      while let name: UInt16 = payload.readInteger(), let value: UInt32 = payload.readInteger() {
        settings[Int(name)] = Int(value)
      }
      return .settings(settings)
    case 6: return .ping(Array(payload.readableBytesView), ack: isEnd)
    case 7:
      let last = Int(payload.readInteger(as: UInt32.self) ?? 0)
      return .goAway(last: last, code: Int(payload.readInteger(as: UInt32.self) ?? 0))
    case 8:
      if stream == 0 { windowUpdateBytes += Int(payload.readInteger(as: UInt32.self) ?? 0) }
      return .other(type: 8)
    case let type: return .other(type: Int(type))
    }
  }
}
