// The first frames of a client. Until a client has acknowledged the server's settings, the handler that makes frames of
// bytes allows it a hundred streams, and takes one more for an error of the connection; the protocol allows any number. So
// that handler is told at once that its settings are acknowledged, and the true acknowledgement is left out.

import NIOCore

struct HTTP2Opening {
  private static let prefaceBytes = 24
  private static let headerBytes = 9
  private static let acknowledgement: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]

  /// Whether there is nothing more to do.
  private(set) var isOver: Bool
  /// Bytes until the next frame's header.
  private var skipped = prefaceBytes
  private var header: [UInt8] = []
  private var frames = 0

  init(_ limits: HTTP2Limits) {
    // A window smaller than that of the protocol holds only once the client knows of it.
    isOver = limits.streamWindow < 65_535
  }

  /// What is handed on of bytes that came: whole frames' headers.
  mutating func pass(_ bytes: ByteBuffer) -> ByteBuffer {
    var (rest, passed) = (bytes, ByteBuffer())
    while !isOver, rest.readableBytes > 0 {
      if skipped > 0 {
        guard var piece = rest.readSlice(length: min(skipped, rest.readableBytes)) else { break }
        skipped -= piece.readableBytes
        passed.writeBuffer(&piece)
        // Behind the client's own settings, before which nothing may come.
        if skipped == 0, frames == 1 { passed.writeBytes(Self.acknowledgement) }
        continue
      }
      header += rest.readBytes(length: min(Self.headerBytes - header.count, rest.readableBytes)) ?? []
      if header.count == Self.headerBytes { begin(&passed) }
    }
    passed.writeBuffer(&rest)
    return passed
  }

  private mutating func begin(_ passed: inout ByteBuffer) {
    frames += 1
    skipped = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
    if frames == 1 {
      // What does not begin with settings is for the handler behind to refuse.
      isOver = header[3] != 4 || header[4] & 1 != 0
    } else if header == Self.acknowledgement {
      isOver = true
      return
    }
    passed.writeBytes(header)
    header = []
    if skipped == 0, frames == 1, !isOver { passed.writeBytes(Self.acknowledgement) }
  }
}
