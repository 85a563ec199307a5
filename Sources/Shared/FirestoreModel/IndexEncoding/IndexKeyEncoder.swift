// Encodes values, names and field paths as index keys: bytes whose order is the database's order.
//
// Invariants
//   1. Bytes of exact encodings, in which nothing is truncated, compare as `Value.compare` does.
//   2. Truncated text keeps the order, but different text may have equal bytes. Therefore readers of an index check the
//      documents again.
//   3. The first `Limits.indexedValueBytes` bytes of any encoding keep the order. In an array or map, the bytes after
//      truncated text do not. Therefore indexes that are read in order store only the first bytes of an array or map.
//   4. No encoding is a prefix of another. This includes truncated values: `byteLimit` truncates all at the same length.

/// Builds an index key part by part.
public struct IndexKeyEncoder: Sendable {
  /// The maximum bytes of one value in a key. Only long containers and references reach it.
  public static let byteLimit = 3072

  /// The key so far.
  public private(set) var bytes: [UInt8]

  /// Whether all values so far are complete. Then equal bytes mean equal values.
  public private(set) var isExact = true

  /// Begins a key with a prefix.
  public init(prefix: [UInt8] = []) { bytes = prefix }

  /// Begins a key with a prefix, and reserves capacity for `room` more bytes.
  public init(prefix: [UInt8], room: Int) {
    bytes = []
    bytes.reserveCapacity(prefix.count + room)
    bytes.append(contentsOf: prefix)
  }

  /// The encoding of one value, ascending.
  public static func encode(_ value: Value) -> [UInt8] {
    var encoder = IndexKeyEncoder()
    encoder.append(value)
    return encoder.bytes
  }

  /// Appends bytes unchanged.
  public mutating func append(raw other: [UInt8]) { bytes.append(contentsOf: other) }

  /// Appends a byte unchanged.
  public mutating func append(raw byte: UInt8) { bytes.append(byte) }

  /// Appends a value. A descending value of a composite index has inverted bytes; single-field indexes are read in
  /// reverse instead.
  public mutating func append(_ value: Value, _ direction: StructuredQuery.Direction = .ascending) {
    let start = bytes.count
    write(value, limit: start + IndexKeyEncoder.byteLimit)
    if bytes.count > start + IndexKeyEncoder.byteLimit {
      bytes.removeLast(bytes.count - start - IndexKeyEncoder.byteLimit)
      isExact = false
    }
    if direction == .descending { invert(from: start) }
    precondition(
      bytes.count - start <= IndexKeyEncoder.byteLimit, "invariant: a value in a key is within its limit")
    assert(isSkippable(from: start, direction), "invariant: a decoder skips exactly the encoded value")
  }

  private func isSkippable(from start: Int, _ direction: StructuredQuery.Direction) -> Bool {
    var decoder = IndexKeyDecoder(bytes, from: start)
    return decoder.skipValue(direction) && decoder.isAtEnd
  }

  /// Appends a path. No path's encoding is a prefix of another's.
  public mutating func append(_ path: ResourcePath, _ direction: StructuredQuery.Direction = .ascending) {
    let start = bytes.count
    for segment in path.segments { append(segment: segment) }
    bytes.append(IndexTag.end)
    if direction == .descending { invert(from: start) }
  }

  /// Appends one id. Ids appended one by one, without an end marker, are a prefix of all keys below them.
  public mutating func append(segment: String) {
    if let number = ResourceID.number(in: segment) {
      bytes.append(IndexTag.numberSegment)
      write(UInt64(bitPattern: number) ^ (1 << 63))
    } else {
      bytes.append(IndexTag.textSegment)
      writeText(segment)
    }
  }

  /// Appends a field path. No field path's encoding is a prefix of another's.
  public mutating func append(_ path: FieldPath) {
    for name in path.segments { append(fieldName: name) }
    endFieldPath()
  }

  /// Appends one name of a field path, which ``endFieldPath()`` ends.
  public mutating func append(fieldName: String) { writeText(fieldName) }

  /// Ends a field path that was appended name by name.
  public mutating func endFieldPath() {
    bytes.append(IndexTag.escape)
    bytes.append(IndexTag.fieldPathEnd)
  }

  private mutating func invert(from start: Int) {
    for i in start..<bytes.count { bytes[i] = ~bytes[i] }
  }

  /// Writes a value. It may stop early beyond `limit`, because the caller truncates the value there.
  private mutating func write(_ value: Value, limit: Int) {
    bytes.append(IndexTag.tag(of: value.kind))
    switch value {
    case .null: break
    case .boolean(let value): bytes.append(value ? 1 : 0)
    case .integer(let value): write(integer: value)
    case .double(let value): write(number: value)
    case .timestamp(let value): write(value)
    case .pendingServerTimestamp(let value): write(value.localWriteTime)
    case .string(let value): writeText(value, cutAt: Limits.indexedValueBytes)
    case .bytes(let value):
      value.withUnsafeBytes { writeEscaped($0, cutAt: Limits.indexedValueBytes) }
    case .reference(let name):
      writeText(name.database.project)
      writeText(name.database.database)
      append(name.path)
    case .geoPoint(let point):
      write(OrderedDouble.bits(point.latitude))
      write(OrderedDouble.bits(point.longitude))
    case .array(let elements):
      for element in elements {
        write(element, limit: limit)
        if bytes.count > limit { return }
      }
      bytes.append(IndexTag.end)
    case .vector(let elements):
      write(UInt32(clamping: elements.count))
      for element in elements {
        write(OrderedDouble.bits(element))
        if bytes.count > limit { return }
      }
    case .map(let map):
      for entry in map.entries {
        bytes.append(IndexTag.mapEntry)
        writeText(entry.key)
        write(entry.value, limit: limit)
        if bytes.count > limit { return }
      }
      bytes.append(IndexTag.end)
    }
  }

  private mutating func write(integer value: Int64) {
    let floor = OrderedDouble.floor(of: value)
    write(OrderedDouble.bits(floor))
    if OrderedDouble.hasRemainder(floor) {
      // `floor` is −2^63 at least and below 2^63 here, so the conversion is exact.
      write(UInt16(truncatingIfNeeded: value &- Int64(floor)))
    }
  }

  private mutating func write(number value: Double) {
    write(OrderedDouble.bits(value))
    if OrderedDouble.hasRemainder(value) { write(0 as UInt16) }
  }

  private mutating func write(_ time: Timestamp) {
    write(UInt64(bitPattern: time.seconds) ^ (1 << 63))
    write(UInt32(bitPattern: time.nanoseconds) ^ (1 << 31))
  }

  private mutating func writeText(_ text: String, cutAt limit: Int = .max) {
    var text = text
    text.withUTF8 { writeEscaped(UnsafeRawBufferPointer($0), cutAt: limit) }
  }

  private mutating func writeEscaped(_ content: UnsafeRawBufferPointer, cutAt limit: Int) {
    var content = content
    if content.count > limit {
      content = UnsafeRawBufferPointer(rebasing: content[..<limit])
      isExact = false
    }
    if content.contains(IndexTag.escape) {
      for byte in content {
        bytes.append(byte)
        if byte == IndexTag.escape { bytes.append(IndexTag.escapedZero) }
      }
    } else {
      bytes.append(contentsOf: content)
    }
    bytes.append(IndexTag.escape)
    bytes.append(IndexTag.textEnd)
  }

  private mutating func write<T: FixedWidthInteger>(_ value: T) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }
}
