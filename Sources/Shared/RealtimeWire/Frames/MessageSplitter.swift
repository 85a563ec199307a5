// Splits an outgoing message into frames that every peer accepts: at most 16,384 UTF-16 code units each. It never
// splits a scalar, so that no frame contains half of a surrogate pair.

/// Splits long messages into several frames, which follow a frame with their count.
public enum MessageSplitter {
  /// The maximum UTF-16 code units of one frame.
  public static let maximumFrameLength = 16_384
  /// The maximum number of frames in a message that every peer accepts.
  public static let maximumFrames = 9_999

  /// The frames of a message as ranges of its bytes, in order.
  ///
  /// - Parameters:
  ///   - message: well-formed UTF-8.
  ///   - length: the maximum UTF-16 code units of one frame.
  ///   - maximum: the maximum number of frames.
  /// - Returns: one range if the message is a single frame. Several ranges if it is split; a frame with their count is
  ///   then sent first. Nil if the message needs more than `maximum` frames.
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
    // This quick check suffices for most messages. A text has at least as many UTF-8 bytes as code units, and a frame
    // that avoids splitting a scalar is at most one code unit shorter than the maximum.
    message.count <= (maximumFrameLength - 1) * maximum || frames(of: message, maximum: maximum) != nil
  }
}
