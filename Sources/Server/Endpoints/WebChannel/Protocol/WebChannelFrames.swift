// Frames: a decimal length, a line feed, and so many UTF-16 code units of JSON.
//
// Everything outside ASCII is written as an escape. Then units and bytes are the same number, and no write can end
// within a character, which old clients do not survive.

import NIOCore

enum WebChannelFrames {
  /// A frame with one array: `[[id,payload]]`.
  /// - Parameter payload: one JSON value in UTF-8.
  static func array(_ id: Int, _ payload: ByteBuffer) -> ByteBuffer {
    var chunk = ByteBuffer()
    chunk.reserveCapacity(payload.readableBytes + 16)
    chunk.writeString("[[\(id),")
    chunk.writeASCII(json: payload)
    chunk.writeString("]]")
    return frame(chunk)
  }

  /// The answer to a handshake.
  static func handshake(session: String, keepAlive: TimeAmount) -> ByteBuffer {
    frame(
      ByteBuffer(string: "[[0,[\"c\",\"\(session)\",\"\",8,12,\(keepAlive.nanoseconds / 1_000_000)]]]"))
  }

  /// The answer to a forward POST: whether there is a back channel, the highest array assigned, and how many bytes of
  /// arrays the client has not acknowledged.
  static func forward(hasBackChannel: Bool, lastArray: Int, outstandingBytes: Int) -> ByteBuffer {
    frame(ByteBuffer(string: "[\(hasBackChannel ? 1 : 0),\(lastArray),\(outstandingBytes)]"))
  }

  static let noop = ByteBuffer(string: "[\"noop\"]")
  static let close = ByteBuffer(string: "[\"close\"]")

  /// - Parameter chunk: ASCII, so that its bytes are its UTF-16 code units.
  private static func frame(_ chunk: ByteBuffer) -> ByteBuffer {
    var frame = ByteBuffer(string: "\(chunk.readableBytes)\n")
    frame.writeImmutableBuffer(chunk)
    return frame
  }
}

extension ByteBuffer {
  /// Writes JSON with everything outside ASCII escaped; it can stand in strings only, where escapes mean the same.
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

  /// The last four bits as a hexadecimal digit.
  private static func digit(_ bits: UInt16) -> UInt8 {
    let value = UInt8(truncatingIfNeeded: bits & 0xF)
    return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}
