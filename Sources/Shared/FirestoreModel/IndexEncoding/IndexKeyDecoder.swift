// Decodes index keys. It skips the values and reads ids and paths.
//
// Invariant: the decoder never reads beyond its bytes. It returns nil for bytes that are not an encoding.

/// A cursor over an index key.
public struct IndexKeyDecoder: Sendable {
  private let bytes: [UInt8]
  /// The position of the next byte.
  public private(set) var position: Int
  /// The mask that is applied to each byte read. It inverts the bytes of a descending part.
  private var mask: UInt8 = 0

  /// Starts at a position in a key.
  public init(_ bytes: [UInt8], from position: Int = 0) {
    self.bytes = bytes
    self.position = position
  }

  /// Whether all bytes have been read.
  public var isAtEnd: Bool { position >= bytes.count }

  /// Skips one value; false if there is none.
  public mutating func skipValue(_ direction: StructuredQuery.Direction = .ascending) -> Bool {
    mask = direction == .descending ? 0xFF : 0
    defer { mask = 0 }
    let limit = position + IndexKeyEncoder.byteLimit
    if skip(limit: limit, depth: 0) { return position <= limit || skipTruncated(to: limit) }
    return skipTruncated(to: limit)
  }

  /// Reads one id; nil if there is none.
  public mutating func segment() -> String? {
    switch next() {
    case IndexTag.numberSegment:
      guard let bits = read(UInt64.self) else { return nil }
      return "__id\(Int64(bitPattern: bits ^ (1 << 63)))__"
    case IndexTag.textSegment: return text()
    default: return nil
    }
  }

  /// Reads a path; nil if there is none.
  public mutating func path(_ direction: StructuredQuery.Direction = .ascending) -> ResourcePath? {
    mask = direction == .descending ? 0xFF : 0
    defer { mask = 0 }
    var segments: [String] = []
    while let byte = peek() {
      if byte == IndexTag.end {
        position += 1
        return ResourcePath(segments)
      }
      guard let segment = segment() else { return nil }
      segments.append(segment)
    }
    return nil
  }

  /// Reads a field path; nil if there is none.
  public mutating func fieldPath() -> FieldPath? {
    var names: [String] = []
    while let byte = peek() {
      if byte == IndexTag.escape, position + 1 < bytes.count, bytes[position + 1] == IndexTag.fieldPathEnd {
        position += 2
        return FieldPath(segments: names)
      }
      guard let name = text() else { return nil }
      names.append(name)
    }
    return nil
  }

  /// Skips to the end of a value that was truncated at its limit.
  private mutating func skipTruncated(to limit: Int) -> Bool {
    guard limit <= bytes.count else { return false }
    position = limit
    return true
  }

  private mutating func skip(limit: Int, depth: Int) -> Bool {
    guard depth <= 64, position < limit, let tag = next() else { return false }
    switch tag {
    case IndexTag.tag(of: .null): return true
    case IndexTag.tag(of: .boolean): return advance(1)
    case IndexTag.tag(of: .number):
      guard let bits = read(UInt64.self) else { return false }
      return OrderedDouble.hasRemainder(orderedBits: bits) ? advance(2) : true
    case IndexTag.tag(of: .timestamp), IndexTag.tag(of: .pendingServerTimestamp): return advance(12)
    case IndexTag.tag(of: .string), IndexTag.tag(of: .bytes): return skipText()
    case IndexTag.tag(of: .reference): return skipText() && skipText() && skipPath()
    case IndexTag.tag(of: .geoPoint): return advance(16)
    case IndexTag.tag(of: .vector):
      guard let count = read(UInt32.self) else { return false }
      return advance(Int(count) * 8)
    case IndexTag.tag(of: .array):
      while let byte = peek(), byte != IndexTag.end {
        if !skip(limit: limit, depth: depth + 1) { return false }
      }
      return advance(1)
    case IndexTag.tag(of: .map):
      while let byte = peek(), byte != IndexTag.end {
        guard byte == IndexTag.mapEntry, advance(1), skipText(), skip(limit: limit, depth: depth + 1) else {
          return false
        }
      }
      return advance(1)
    default: return false
    }
  }

  private mutating func skipPath() -> Bool {
    while let byte = next() {
      switch byte {
      case IndexTag.end: return true
      case IndexTag.numberSegment: if !advance(8) { return false }
      case IndexTag.textSegment: if !skipText() { return false }
      default: return false
      }
    }
    return false
  }

  private mutating func skipText() -> Bool {
    while let byte = next() {
      guard byte == IndexTag.escape else { continue }
      switch next() {
      case IndexTag.textEnd: return true
      case IndexTag.escapedZero: continue
      default: return false
      }
    }
    return false
  }

  private mutating func text() -> String? {
    var content: [UInt8] = []
    while let byte = next() {
      guard byte == IndexTag.escape else {
        content.append(byte)
        continue
      }
      switch next() {
      case IndexTag.textEnd: return content.withUnsafeBytes { String(strictUTF8: $0) }
      case IndexTag.escapedZero: content.append(IndexTag.escape)
      default: return nil
      }
    }
    return nil
  }

  private func peek() -> UInt8? { position < bytes.count ? bytes[position] ^ mask : nil }

  private mutating func next() -> UInt8? {
    guard let byte = peek() else { return nil }
    position += 1
    return byte
  }

  private mutating func advance(_ count: Int) -> Bool {
    guard bytes.count - position >= count else { return false }
    position += count
    return true
  }

  private mutating func read<T: FixedWidthInteger & UnsignedInteger>(_: T.Type) -> T? {
    guard bytes.count - position >= MemoryLayout<T>.size else { return nil }
    var value: T = 0
    for _ in 0..<MemoryLayout<T>.size { value = value << 8 | T(next() ?? 0) }
    return value
  }
}
