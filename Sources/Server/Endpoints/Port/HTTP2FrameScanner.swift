// Finds where frames begin in one direction of an HTTP/2 connection, without decoding them.

import NIOCore

/// The beginning of a frame's header.
struct HTTP2FrameStart: Equatable {
  /// Of the payload, in bytes.
  let length: Int
  let type: UInt8
  let flags: UInt8
}

/// Follows the frames of one direction, however its bytes are cut.
struct HTTP2FrameScanner {
  /// The bytes before the first frame of a client.
  static let preface = 24
  /// What of a frame's header is looked at, and the stream's number behind it.
  private static let lookedAt = 5
  private static let streamBytes = 4

  private var skipped: Int
  private var header: UInt64 = 0
  private var headerBytes = 0

  /// - Parameter skipping: bytes before the first frame.
  init(skipping: Int = 0) { skipped = skipping }

  /// Tells each frame that begins in these bytes, in order.
  mutating func scan(_ bytes: ByteBufferView, _ found: (HTTP2FrameStart) -> Void) {
    bytes.withUnsafeBytes { raw in
      var index = 0
      while index < raw.count {
        if skipped > 0 {
          let step = min(skipped, raw.count - index)
          skipped -= step
          index += step
          continue
        }
        header = header << 8 | UInt64(raw[index])
        headerBytes += 1
        index += 1
        guard headerBytes == Self.lookedAt else { continue }
        let length = Int(header >> 16)
        found(
          HTTP2FrameStart(
            length: length, type: UInt8(truncatingIfNeeded: header >> 8),
            flags: UInt8(truncatingIfNeeded: header)))
        skipped = Self.streamBytes + length
        header = 0
        headerBytes = 0
      }
    }
  }
}
