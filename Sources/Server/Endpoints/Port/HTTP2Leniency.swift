// Frames of a client that break the rules of one stream alone, and that the handler that makes frames of bytes takes for
// errors of the whole connection. They are left out, or made harmless, before it sees them:
//
//   - PRIORITY means nothing here, so it is left out, whatever its length and whatever it depends on;
//   - what a HEADERS frame depends on is blotted out, since a stream may not depend on itself;
//   - DATA behind the client's own reset of its stream is left out, and given back to the connection's window.
//
// Invariants: all else is handed on as it came; no field block is touched, since every one of them changes what later
// ones mean; within a field block everything is handed on, since it breaks the connection.

import NIOCore

struct HTTP2Leniency {
  private struct Frame {
    var length: Int
    var type: UInt8
    var flags: UInt8
    var stream: UInt32
  }

  private static let headerBytes = 9
  /// Of a larger frame the handler behind has to tell the client: it was never allowed.
  static let largestFrame = 16 << 10
  private static let dependencyBytes = 4
  /// Resets that are remembered, the latest of them.
  private static let mostResets = 100

  private var left = HTTP2FrameScanner.preface
  /// How much of the frame has been seen, its header not counted.
  private var seen = 0
  private var isLeftOut = false
  /// Where the frame says what its stream depends on.
  private var dependency: Int?
  private var hasBegun = false
  private var isInFieldBlock = false
  /// The bytes of a field block that has not come whole: they are kept until it has.
  private(set) var fieldBlockBytes = 0
  /// Whether a field block ends with the frame that is coming.
  private var endsFieldBlock = false
  /// The beginning of a frame's header that has not come whole.
  private var held = ByteBuffer()
  private var resets = CircularBuffer<UInt32>(initialCapacity: 0)
  /// What was left out of the connection's window, and not given back yet.
  private(set) var owed = 0

  /// What is handed on of bytes that came.
  mutating func pass(_ came: ByteBuffer) -> ByteBuffer {
    var bytes = came
    if held.readableBytes > 0 {
      held.writeImmutableBuffer(came)
      bytes = held
      held = ByteBuffer()
    }
    var passed: ByteBuffer?
    // From here on what has been looked at is to be handed on.
    var start = bytes.readerIndex
    var index = start
    while index < bytes.writerIndex {
      if left > 0 {
        let step = min(left, bytes.writerIndex - index)
        if isLeftOut {
          start = index + step
        } else if let dependency {
          Self.blot(&bytes, at: index, seen..<seen + step, dependency)
        }
        index += step
        left -= step
        seen += step
        if left == 0 { end() }
        continue
      }
      guard let frame = Self.frame(in: bytes, at: index) else { break }
      begin(frame)
      if left == 0 { end() }
      if isLeftOut {
        Self.append(&passed, bytes, start..<index)
        start = index + Self.headerBytes
      }
      index += Self.headerBytes
    }
    // A copy of the few bytes: they may not keep all that came.
    if let rest = bytes.getBytes(at: index, length: bytes.writerIndex - index) { held.writeBytes(rest) }
    if passed == nil { return bytes.getSlice(at: start, length: index - start) ?? ByteBuffer() }
    Self.append(&passed, bytes, start..<index)
    return passed ?? ByteBuffer()
  }

  /// What is to be given back to the connection's window, once that is worth a frame.
  mutating func giveBack(atLeast bytes: Int) -> Int? {
    guard owed > 0, owed >= bytes else { return nil }
    defer { owed = 0 }
    return owed
  }

  private mutating func begin(_ frame: Frame) {
    left = frame.length
    seen = 0
    isLeftOut = false
    dependency = nil
    let isFirst = !hasBegun
    hasBegun = true
    guard !isFirst, frame.length <= Self.largestFrame else { return }
    switch frame.type {
    case 1:
      isInFieldBlock = frame.flags & 4 == 0
      endsFieldBlock = !isInFieldBlock
      fieldBlockBytes = frame.length
      // Behind the length of the padding, if there is any.
      if frame.flags & 0x20 != 0 { dependency = frame.flags & 8 != 0 ? 1 : 0 }
    case 9 where isInFieldBlock:
      isInFieldBlock = frame.flags & 4 == 0
      endsFieldBlock = !isInFieldBlock
      fieldBlockBytes += frame.length
    case _ where isInFieldBlock: return
    case 0 where resets.contains(frame.stream):
      isLeftOut = true
      owed += frame.length
    case 2: isLeftOut = frame.stream != 0
    case 3:
      if resets.count == Self.mostResets { resets.removeFirst() }
      resets.append(frame.stream)
    default: return
    }
  }

  /// A frame has come whole.
  private mutating func end() {
    guard endsFieldBlock else { return }
    endsFieldBlock = false
    fieldBlockBytes = 0
  }

  private static func frame(in bytes: ByteBuffer, at index: Int) -> Frame? {
    guard bytes.writerIndex - index >= headerBytes,
      let start = bytes.getInteger(at: index, as: UInt32.self),
      let flags = bytes.getInteger(at: index + 4, as: UInt8.self),
      let stream = bytes.getInteger(at: index + 5, as: UInt32.self)
    else { return nil }
    return Frame(
      length: Int(start >> 8), type: UInt8(truncatingIfNeeded: start), flags: flags,
      stream: stream & 0x7fff_ffff)
  }

  /// Makes what of a dependency lies within a piece of a frame's payload that of stream 0, which all streams depend on.
  private static func blot(
    _ bytes: inout ByteBuffer, at index: Int, _ piece: Range<Int>, _ dependency: Int
  ) {
    let field = (dependency..<dependency + dependencyBytes).clamped(to: piece)
    for place in field {
      let at = index + place - piece.lowerBound
      // The bytes are written only if they have to be, since that copies those that are shared.
      if bytes.getInteger(at: at, as: UInt8.self) != 0 { bytes.setInteger(UInt8(0), at: at) }
    }
  }

  private static func append(_ passed: inout ByteBuffer?, _ bytes: ByteBuffer, _ range: Range<Int>) {
    guard !range.isEmpty, let piece = bytes.getSlice(at: range.lowerBound, length: range.count) else {
      return
    }
    // In place: held twice it would be copied whole for each frame.
    if passed == nil { passed = ByteBuffer() }
    passed?.writeImmutableBuffer(piece)
  }
}
