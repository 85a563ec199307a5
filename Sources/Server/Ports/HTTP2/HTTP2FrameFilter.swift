// Filters frames that break the rules of one stream, before NIOHTTP2 treats them as errors of the connection:
//
//   - PRIORITY frames of any length and dependency are dropped: the server ignores priorities;
//   - the stream dependency of a HEADERS frame is set to 0, since a stream must not depend on itself;
//   - DATA frames after the client's reset of their stream are dropped. Their bytes are credited to the connection's window.
//
// Invariants
//   1. All other bytes pass unchanged.
//   2. Field blocks pass unchanged: each one changes the HPACK tables that decode the next ones.
//   3. A frame between the frames of a field block passes, since it is an error of the connection, which NIOHTTP2
//      reports.
//
// Decision: docs/decisions/0022-limits-of-http2-frames.md

import NIOCore

/// Filters the input of one HTTP/2 connection.
struct HTTP2FrameFilter {
  private struct Frame {
    var length: Int
    var type: UInt8
    var flags: UInt8
    var stream: UInt32
  }

  private static let prefaceBytes = 24
  private static let headerBytes = 9
  /// The maximum payload of a frame. NIOHTTP2 rejects larger frames, which the settings never allowed.
  static let maximumFrameBytes = 16 << 10
  private static let dependencyBytes = 4
  /// The number of most recent resets that are remembered.
  private static let maximumRememberedResets = 100

  /// Bytes of the current frame's payload that have not arrived.
  private var remaining = prefaceBytes
  /// Bytes of the current frame's payload that arrived.
  private var received = 0
  private var isDropped = false
  /// The offset of the stream dependency in the current frame's payload.
  private var dependencyOffset: Int?
  private var hasBegun = false
  private var isInFieldBlock = false
  /// The bytes of an incomplete field block, which the server holds until the block is complete.
  private(set) var fieldBlockBytes = 0
  /// Whether the current frame completes a field block.
  private var endsFieldBlock = false
  /// The first bytes of an incomplete frame header.
  private var partialHeader = ByteBuffer()
  private var resets = CircularBuffer<UInt32>(initialCapacity: 0)
  private var settingsCount = 0
  /// Dropped bytes that are not yet credited to the connection's window by a WINDOW_UPDATE.
  private(set) var windowCredit = 0

  /// Returns the bytes that pass.
  mutating func filter(_ input: ByteBuffer) -> ByteBuffer {
    var bytes = input
    if partialHeader.readableBytes > 0 {
      partialHeader.writeImmutableBuffer(input)
      bytes = partialHeader
      partialHeader = ByteBuffer()
    }
    var passed: ByteBuffer?
    // The bytes between `start` and `index` were read and pass.
    var start = bytes.readerIndex
    var index = start
    while index < bytes.writerIndex {
      if remaining > 0 {
        let step = min(remaining, bytes.writerIndex - index)
        if isDropped {
          start = index + step
        } else if let dependencyOffset {
          Self.clearDependency(&bytes, at: index, received..<received + step, dependencyOffset)
        }
        index += step
        remaining -= step
        received += step
        if remaining == 0 { endFrame() }
        continue
      }
      guard let frame = Self.frame(in: bytes, at: index) else { break }
      begin(frame)
      if remaining == 0 { endFrame() }
      if isDropped {
        Self.append(&passed, bytes, start..<index)
        start = index + Self.headerBytes
      }
      index += Self.headerBytes
    }
    // The few bytes of an incomplete frame header are copied, so that they do not retain the input's memory.
    if let rest = bytes.getBytes(at: index, length: bytes.writerIndex - index) {
      partialHeader.writeBytes(rest)
    }
    if passed == nil { return bytes.getSlice(at: start, length: index - start) ?? ByteBuffer() }
    Self.append(&passed, bytes, start..<index)
    return passed ?? ByteBuffer()
  }

  /// Returns and resets the window credit if it is at least `bytes`, otherwise nil.
  mutating func useWindowCredit(atLeast bytes: Int) -> Int? {
    guard windowCredit > 0, windowCredit >= bytes else { return nil }
    defer { windowCredit = 0 }
    return windowCredit
  }

  /// Returns the number of SETTINGS frames since the last call, without acknowledgements.
  mutating func resetSettingsCount() -> Int {
    defer { settingsCount = 0 }
    return settingsCount
  }

  private mutating func begin(_ frame: Frame) {
    remaining = frame.length
    received = 0
    isDropped = false
    dependencyOffset = nil
    let isFirst = !hasBegun
    hasBegun = true
    guard !isFirst, frame.length <= Self.maximumFrameBytes else { return }
    switch frame.type {
    case 1:
      isInFieldBlock = frame.flags & 4 == 0
      endsFieldBlock = !isInFieldBlock
      fieldBlockBytes = frame.length
      // A frame with the PRIORITY flag contains a dependency. In a padded frame, one byte with the padding's length
      // precedes it.
      if frame.flags & 0x20 != 0 { dependencyOffset = frame.flags & 8 != 0 ? 1 : 0 }
    case 9 where isInFieldBlock:
      isInFieldBlock = frame.flags & 4 == 0
      endsFieldBlock = !isInFieldBlock
      fieldBlockBytes += frame.length
    case _ where isInFieldBlock: return
    case 0 where resets.contains(frame.stream):
      isDropped = true
      windowCredit += frame.length
    case 2: isDropped = frame.stream != 0
    case 3:
      if resets.count == Self.maximumRememberedResets { resets.removeFirst() }
      resets.append(frame.stream)
    case 4 where frame.flags & 1 == 0: settingsCount += 1
    default: return
    }
  }

  private mutating func endFrame() {
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

  /// Clears the bytes of a stream dependency that lie in `range` of the payload. Every stream may depend on stream 0.
  private static func clearDependency(
    _ bytes: inout ByteBuffer, at index: Int, _ range: Range<Int>, _ dependencyOffset: Int
  ) {
    let field = (dependencyOffset..<dependencyOffset + dependencyBytes).clamped(to: range)
    for offset in field {
      let position = index + offset - range.lowerBound
      // Bytes that are already 0 are not written, since writing to a shared buffer copies it.
      if bytes.getInteger(at: position, as: UInt8.self) != 0 { bytes.setInteger(UInt8(0), at: position) }
    }
  }

  private static func append(_ passed: inout ByteBuffer?, _ bytes: ByteBuffer, _ range: Range<Int>) {
    guard !range.isEmpty, let part = bytes.getSlice(at: range.lowerBound, length: range.count) else {
      return
    }
    // Appends in place: a second reference would cause a copy for each frame.
    if passed == nil { passed = ByteBuffer() }
    passed?.writeImmutableBuffer(part)
  }
}
