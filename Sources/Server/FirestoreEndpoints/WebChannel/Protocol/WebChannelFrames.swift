// WebChannel frames: a decimal length, a line feed, and JSON with this number of UTF-16 code units. The server sends its
// numbered messages (arrays) as frames in the response to a GET request, the back channel. The client sends messages in
// POST requests (forward POSTs).
//
// Characters outside ASCII are written as JSON escapes. Thus the number of code units equals the number of bytes, and no
// write ends inside a character. Old clients fail on incomplete characters.

import NIOCore

/// Encoders of WebChannel frames.
enum WebChannelFrames {
  /// Returns a frame with one array: `[[id,payload]]`.
  /// - Parameter payload: one JSON value in UTF-8.
  static func array(_ id: Int, _ payload: ByteBuffer) -> ByteBuffer {
    var chunk = ByteBuffer()
    chunk.reserveCapacity(payload.readableBytes + 16)
    chunk.writeString("[[\(id),")
    chunk.writeASCII(json: payload)
    chunk.writeString("]]")
    return frame(chunk)
  }

  /// Returns the response to a handshake. Its numbers are the protocol version (8), the server version (12) and the
  /// keep-alive interval in milliseconds.
  static func handshake(session: String, keepAlive: TimeAmount) -> ByteBuffer {
    frame(
      ByteBuffer(string: "[[0,[\"c\",\"\(session)\",\"\",8,12,\(keepAlive.nanoseconds / 1_000_000)]]]"))
  }

  /// Returns the response to a forward POST: whether a back channel is open, the number of the last array, and the bytes
  /// of unacknowledged arrays.
  static func forward(hasBackChannel: Bool, lastArray: Int, outstandingBytes: Int) -> ByteBuffer {
    frame(ByteBuffer(string: "[\(hasBackChannel ? 1 : 0),\(lastArray),\(outstandingBytes)]"))
  }

  static let noop = ByteBuffer(string: "[\"noop\"]")
  static let close = ByteBuffer(string: "[\"close\"]")

  /// Returns a frame with a chunk.
  /// - Parameter chunk: ASCII, so its byte count equals its number of UTF-16 code units.
  private static func frame(_ chunk: ByteBuffer) -> ByteBuffer {
    var frame = ByteBuffer(string: "\(chunk.readableBytes)\n")
    frame.writeImmutableBuffer(chunk)
    return frame
  }
}

extension ByteBuffer {
  /// Writes JSON with escapes for all characters outside ASCII. In valid JSON these appear only in strings, where an
  /// escape has the same meaning.
  mutating func writeASCII(json: ByteBuffer) {
    let bytes = json.readableBytesView
    guard let first = bytes.firstIndex(where: { $0 >= 0x80 }) else {
      writeImmutableBuffer(json)
      return
    }
    writeBytes(bytes[..<first])
    var escaped: [UInt8] = []
    escaped.reserveCapacity(2 * (bytes.endIndex - first))
    for unit in String(decoding: bytes[first...], as: UTF8.self).utf16 {
      if unit < 0x80 {
        escaped.append(UInt8(truncatingIfNeeded: unit))
      } else {
        escaped.append(UInt8(ascii: "\\"))
        escaped.append(UInt8(ascii: "u"))
        for shift in stride(from: 12, through: 0, by: -4) {
          escaped.append(Self.digit(unit >> UInt16(shift)))
        }
      }
    }
    writeBytes(escaped)
  }

  /// Returns the lowest four bits as a hexadecimal digit.
  private static func digit(_ bits: UInt16) -> UInt8 {
    let value = UInt8(truncatingIfNeeded: bits & 0xF)
    return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}
