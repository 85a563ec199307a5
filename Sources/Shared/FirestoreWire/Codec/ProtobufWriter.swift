// Writes protobuf's wire format from back to front. The length of a message is then known when its prefix is written:
// no message is measured in advance, or moved to make room for its prefix.
//
// Invariant: `start ..< capacity` of the memory is initialised and holds the bytes written. The writer owns the memory.

/// Builds one message, last field first.
struct ProtobufWriter: ~Copyable {
  private var memory: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private var start: Int

  init(capacity: Int = 512) {
    self.capacity = capacity
    start = capacity
    memory = .allocate(capacity: capacity)
  }

  deinit { memory.deallocate() }

  /// The number of bytes written.
  var count: Int { capacity - start }

  /// Returns the bytes of the message.
  func finish() -> [UInt8] { Array(UnsafeBufferPointer(start: memory + start, count: count)) }

  private mutating func reserve(_ count: Int) {
    if start >= count { return }
    let used = self.count
    var larger = capacity * 2
    while larger - used < count { larger *= 2 }
    let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
    (copy + (larger - used)).initialize(from: memory + start, count: used)
    memory.deallocate()
    memory = copy
    capacity = larger
    start = larger - used
  }

  mutating func raw(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
    reserve(bytes.count)
    start -= bytes.count
    UnsafeMutableRawPointer(memory + start).copyMemory(from: base, byteCount: bytes.count)
  }

  mutating func varint(_ value: UInt64) {
    if value < 0x80 {
      reserve(1)
      start -= 1
      memory[start] = UInt8(truncatingIfNeeded: value)
      return
    }
    let length = (70 - value.leadingZeroBitCount) / 7
    reserve(length)
    start -= length
    var rest = value
    for i in 0..<length - 1 {
      memory[start + i] = UInt8(truncatingIfNeeded: rest) | 0x80
      rest >>= 7
    }
    memory[start + length - 1] = UInt8(truncatingIfNeeded: rest)
  }

  mutating func tag(_ field: Int, _ type: ProtobufReader.WireType) {
    varint(UInt64(field) << 3 | UInt64(type.rawValue))
  }

  /// Writes the tag and length of a length-delimited field. Its content is all bytes written since `mark`.
  mutating func lengthPrefix(_ field: Int, since mark: Int) {
    varint(UInt64(count - mark))
    tag(field, .bytes)
  }

  mutating func field(_ field: Int, varint value: UInt64) {
    varint(value)
    tag(field, .varint)
  }

  mutating func field(_ field: Int, double value: Double) {
    withUnsafeBytes(of: value.bitPattern.littleEndian) { raw($0) }
    tag(field, .fixed64)
  }

  mutating func field(_ field: Int, bytes value: [UInt8]) {
    let mark = count
    value.withUnsafeBytes { raw($0) }
    lengthPrefix(field, since: mark)
  }

  mutating func field(_ field: Int, string value: String) {
    let mark = count
    write(utf8: value)
    lengthPrefix(field, since: mark)
  }

  mutating func write(utf8 value: String) {
    var value = value
    value.withUTF8 { raw(UnsafeRawBufferPointer($0)) }
  }
}
