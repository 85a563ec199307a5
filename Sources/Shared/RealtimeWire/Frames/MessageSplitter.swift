// Cuts an outgoing message into pieces that every peer accepts: at most 16,384 UTF-16 units each,
// never inside a scalar, so that no surrogate pair is torn by the WebSocket layer.

/// How long messages become several frames: a frame with the count, then the pieces.
public enum MessageSplitter {
  /// The most UTF-16 units in one piece.
  public static let pieceLength = 16_384
  /// The most pieces that every peer understands a count of.
  public static let maximumFrames = 9_999

  /// The pieces of a message as ranges of its bytes, in order.
  ///
  /// One range means that the message goes out as it is; several, that a frame with their number
  /// goes first. `nil` for a message that no peer could receive, since it has too many pieces.
  ///
  /// - Parameters:
  ///   - message: well-formed UTF-8.
  ///   - length: the most UTF-16 units in one piece.
  ///   - maximum: the most pieces.
  public static func frames(
    of message: UnsafeRawBufferPointer, length: Int = pieceLength, maximum: Int = maximumFrames
  ) -> [Range<Int>]? {
    if message.count <= length { return [0..<message.count] }
    var pieces: [Range<Int>] = []
    var start = 0
    var units = 0
    for (index, byte) in message.enumerated() where byte & 0xC0 != 0x80 {
      let width = byte >= 0xF0 ? 2 : 1
      if units + width > length {
        pieces.append(start..<index)
        if pieces.count == maximum { return nil }
        start = index
        units = 0
      }
      units += width
    }
    pieces.append(start..<message.count)
    return pieces
  }

  /// Whether a message has no more pieces than a peer takes.
  public static func fits(_ message: UnsafeRawBufferPointer, maximum: Int = maximumFrames) -> Bool {
    // A character has at least as many bytes as units, and a piece lacks at most half a pair.
    message.count <= (pieceLength - 1) * maximum || frames(of: message, maximum: maximum) != nil
  }
}
