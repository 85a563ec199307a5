// Outgoing arrays: the arrays of a session that the client has not acknowledged. An array is a numbered message to the
// client. Each array is encoded once and kept until the acknowledgement, so that the next back channel (the client's
// GET request) can resend it after a disconnect.
//
// Invariant: array numbers rise by one over the complete session. The handshake has number 0.

import NIOCore

/// The retransmission buffer of a session.
struct OutgoingArrays {
  private var frames = CircularBuffer<ByteBuffer>()
  /// The highest number assigned.
  private(set) var lastNumber = 0
  /// Bytes of all unacknowledged frames.
  private(set) var bytes = 0

  var isEmpty: Bool { frames.isEmpty }

  /// Appends an array and returns its frame.
  @discardableResult
  mutating func append(_ payload: ByteBuffer) -> ByteBuffer {
    lastNumber += 1
    let frame = WebChannelFrames.array(lastNumber, payload)
    frames.append(frame)
    bytes += frame.readableBytes
    return frame
  }

  /// Removes all arrays up to a number, which the client acknowledged.
  /// - Throws: an error if no array with this number was sent.
  mutating func acknowledge(_ id: Int) throws(WebChannelError) {
    guard id <= lastNumber else {
      throw .malformed("AID is \(id), but the last array of this session is \(lastNumber).")
    }
    while lastNumber - frames.count < id, let frame = frames.popFirst() { bytes -= frame.readableBytes }
  }

  /// Returns all frames after a number in one buffer.
  func frames(after id: Int) -> ByteBuffer {
    var all = ByteBuffer()
    let skipped = max(0, id - (lastNumber - frames.count))
    for frame in frames.dropFirst(skipped) { all.writeImmutableBuffer(frame) }
    return all
  }
}
