// Splits an outgoing message into frames that every peer accepts: at most 16,384 UTF-16 code units each. It never
// splits a scalar, so that the WebSocket layer never sees half of a surrogate pair.

/// Splits long messages into several frames, which follow a frame with their count.
public enum MessageSplitter {
  /// The maximum UTF-16 code units of one frame.
  public static let maximumFrameLength = 16_384
  /// The maximum count of frames that every peer accepts.
  public static let maximumFrames = 9_999

  /// The frames of a message as ranges of its bytes, in order.
  ///
  /// - Parameters:
  ///   - message: well-formed UTF-8.
  ///   - length: the maximum UTF-16 code units of one frame.
  ///   - maximum: the maximum number of frames.
  /// - Returns: one range for a message that is sent as it is, several ranges for frames that follow a frame with their
  ///   count; nil if the message needs more than `maximum` frames.
  public static func frames(
    of message: UnsafeRawBufferPointer, length: Int = maximumFrameLength, maximum: Int = maximumFrames
  ) -> [Range<Int>]? {
    if message.count <= length { return [0..<message.count] }
    var frames: [Range<Int>] = []
    var start = 0
    var units = 0
    for (index, byte) in message.enumerated() where byte & 0xC0 != 0x80 {
      let width = byte >= 0xF0 ? 2 : 1
      if units + width > length {
        frames.append(start..<index)
        if frames.count == maximum { return nil }
        start = index
        units = 0
      }
      units += width
    }
    frames.append(start..<message.count)
    assert(
      zip(frames, frames.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound },
      "invariant: the frames cover the message without gaps")
    return frames
  }

  /// Whether a message fits into `maximum` frames.
  public static func fits(_ message: UnsafeRawBufferPointer, maximum: Int = maximumFrames) -> Bool {
    // A scalar has at least as many bytes as code units, and a frame is at most one code unit short of the maximum.
    message.count <= (maximumFrameLength - 1) * maximum || frames(of: message, maximum: maximum) != nil
  }
}
