// The arrays of a session that its client has not acknowledged: each is encoded once, and kept for the back channel
// that comes after one that was cut.
//
// Invariant: numbers rise over the session and none is used again; the handshake has number 0.

import NIOCore

struct OutgoingArrays {
  private var frames = CircularBuffer<ByteBuffer>()
  /// The highest number assigned.
  private(set) var last = 0
  /// Bytes of the frames that are kept.
  private(set) var bytes = 0

  var isEmpty: Bool { frames.isEmpty }

  /// Appends an array and returns its frame.
  @discardableResult
  mutating func append(_ payload: ByteBuffer) -> ByteBuffer {
    last += 1
    let frame = WebChannelFrames.array(last, payload)
    frames.append(frame)
    bytes += frame.readableBytes
    return frame
  }

  /// Forgets what the client has.
  /// - Throws: a refusal if it cannot have that.
  mutating func acknowledge(_ id: Int) throws(WebChannelRefusal) {
    guard id <= last else {
      throw .malformed("AID is \(id), but the last array of this session is \(last).")
    }
    while last - frames.count < id, let frame = frames.popFirst() { bytes -= frame.readableBytes }
  }

  /// The frames after a number, in one piece.
  func frames(after id: Int) -> ByteBuffer {
    var all = ByteBuffer()
    let skipped = max(0, id - (last - frames.count))
    for frame in frames.dropFirst(skipped) { all.writeImmutableBuffer(frame) }
    return all
  }
}
