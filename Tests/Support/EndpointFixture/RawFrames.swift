// Raw frames: HTTP/2 frames as bytes, including frames that no client library sends.

import NIOCore

enum RawFrames {
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  /// The preface and an empty SETTINGS frame.
  static let opening = preface + frame(type: 4, stream: 0)

  static func frame(type: UInt8, flags: UInt8 = 0, stream: UInt32, _ payload: [UInt8] = []) -> [UInt8] {
    var buffer = ByteBuffer()
    buffer.writeInteger(UInt32(payload.count) << 8 | UInt32(type))
    buffer.writeInteger(flags)
    buffer.writeInteger(stream)
    buffer.writeBytes(payload)
    return Array(buffer.readableBytesView)
  }

  /// A HEADERS frame of a call, without END_STREAM.
  static func head(_ path: String, stream: UInt32) -> [UInt8] {
    let fields = [
      (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
      ("content-type", "application/grpc"), ("te", "trailers"),
    ]
    var block: [UInt8] = []
    for (name, value) in fields {
      // In HPACK these are literal fields without indexing. Names and values have fewer than 127 bytes, so
      // that each length fits into one byte.
      block += [0, UInt8(name.utf8.count)] + Array(name.utf8)
      block += [UInt8(value.utf8.count)] + Array(value.utf8)
    }
    return frame(type: 1, flags: 4, stream: stream, block)
  }

  static func reset(_ stream: UInt32) -> [UInt8] { frame(type: 3, stream: stream, [0, 0, 0, 8]) }

  static let ping = frame(type: 6, stream: 0, [1, 2, 3, 4, 5, 6, 7, 8])

  /// A WINDOW_UPDATE frame for `bytes` bytes.
  static func window(_ bytes: UInt8, stream: UInt32) -> [UInt8] {
    frame(type: 8, stream: stream, [0, 0, 0, bytes])
  }
}
