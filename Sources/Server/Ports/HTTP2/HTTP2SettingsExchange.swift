// Acknowledges the server's settings to NIOHTTP2 as soon as the client's first frame is complete.
//
// Until a client acknowledges the settings, NIOHTTP2 allows it 100 streams and treats one more as an error of the
// connection. The protocol has no such limit. This type inserts an acknowledgement after the client's own settings, and
// drops the real acknowledgement when it arrives.

import NIOCore

/// Replaces the client's acknowledgement of the settings in the input of one HTTP/2 connection.
struct HTTP2SettingsExchange {
  private static let prefaceBytes = 24
  private static let headerBytes = 9
  private static let acknowledgement: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]

  /// Whether all further bytes pass unchanged.
  private(set) var isOver: Bool
  /// Bytes until the next frame header.
  private var bytesToNextHeader = prefaceBytes
  private var header: [UInt8] = []
  private var frameCount = 0

  init(_ limits: HTTP2Limits) {
    // A stream window below the protocol's default must not apply before the client has acknowledged it. The
    // acknowledgement is then not inserted.
    isOver = limits.streamWindow < 65_535
  }

  /// Returns the bytes that pass. An incomplete frame header is held.
  mutating func filter(_ bytes: ByteBuffer) -> ByteBuffer {
    var (rest, passed) = (bytes, ByteBuffer())
    while !isOver, rest.readableBytes > 0 {
      if bytesToNextHeader > 0 {
        guard var part = rest.readSlice(length: min(bytesToNextHeader, rest.readableBytes)) else { break }
        bytesToNextHeader -= part.readableBytes
        passed.writeBuffer(&part)
        // The client's settings have to be its first frame.
        if bytesToNextHeader == 0, frameCount == 1 { passed.writeBytes(Self.acknowledgement) }
        continue
      }
      header += rest.readBytes(length: min(Self.headerBytes - header.count, rest.readableBytes)) ?? []
      if header.count == Self.headerBytes { beginFrame(&passed) }
    }
    passed.writeBuffer(&rest)
    return passed
  }

  private mutating func beginFrame(_ passed: inout ByteBuffer) {
    frameCount += 1
    bytesToNextHeader = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
    if frameCount == 1 {
      // NIOHTTP2 rejects a connection whose first frame is not SETTINGS.
      isOver = header[3] != 4 || header[4] & 1 != 0
    } else if header == Self.acknowledgement {
      isOver = true
      return
    }
    passed.writeBytes(header)
    header = []
    if bytesToNextHeader == 0, frameCount == 1, !isOver { passed.writeBytes(Self.acknowledgement) }
  }
}
