// Reads strings. It rejects malformed UTF-8, unknown escapes and lone surrogates. Most strings are ASCII without
// escapes; the reader scans such a string eight bytes at a time and copies it once.

extension JSONReader {
  /// The length of the run of plain ASCII from `start`: no quote, backslash, control or high byte.
  @inline(__always)
  private func plainRun(from start: Int) -> Int {
    var index = start
    let raw = UnsafeRawPointer(base)
    while index + 8 <= count {
      let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let marks = Self.marks(word)
      if marks != 0 { return index + marks.trailingZeroBitCount / 8 - start }
      index += 8
    }
    while index < count {
      let byte = base[index]
      if byte < 0x20 || byte >= 0x80 || byte == 0x22 || byte == 0x5C { break }
      index += 1
    }
    return index - start
  }

  /// A word in which the top bit of a byte is set if that byte of `word` is a quote, a backslash, a control or not
  /// ASCII.
  ///
  /// The subtractions borrow from higher bytes and may mark these wrongly. Therefore only the lowest mark is reliable.
  @inline(__always)
  private static func marks(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let tops: UInt64 = 0x8080_8080_8080_8080
    let quotes = word ^ (ones &* 0x22)
    let slashes = word ^ (ones &* 0x5C)
    let isQuote = (quotes &- ones) & ~quotes
    let isSlash = (slashes &- ones) & ~slashes
    let isControl = (word &- (ones &* 0x20)) & ~word
    return (isQuote | isSlash | isControl | word) & tops
  }

  /// Reads a string after its opening quote, which is already consumed.
  @usableFromInline
  mutating func stringBody() throws(JSONError) -> String {
    let run = plainRun(from: position)
    if position + run < count, base[position + run] == UInt8(ascii: "\"") {
      let text = String(decoding: UnsafeBufferPointer(start: base + position, count: run), as: UTF8.self)
      position += run + 1
      return text
    }
    return try stringBodySlowly(afterRun: run)
  }

  @inline(never)
  private mutating func stringBodySlowly(afterRun run: Int) throws(JSONError) -> String {
    let start = position
    position += run
    // Validates until the first escape. If the string has none, its bytes are the result.
    while true {
      guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
      let byte = base[position]
      if byte == UInt8(ascii: "\"") {
        let bytes = UnsafeBufferPointer(start: base + start, count: position - start)
        position += 1
        return String(decoding: bytes, as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\") { break }
      try skipRaw(byte)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(position - start + 64)
    bytes.append(contentsOf: UnsafeBufferPointer(start: base + start, count: position - start))
    while true {
      guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
      let byte = base[position]
      if byte == UInt8(ascii: "\"") {
        position += 1
        return String(decoding: bytes, as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\") {
        try escape { unit in bytes.append(unit) }
      } else {
        let from = position
        try skipRaw(byte)
        bytes.append(contentsOf: UnsafeBufferPointer(start: base + from, count: position - from))
      }
    }
  }

  /// Skips and validates a string after its opening quote, which is already consumed.
  mutating func skipStringBody() throws(JSONError) {
    while true {
      position += plainRun(from: position)
      guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
      let byte = base[position]
      if byte == UInt8(ascii: "\"") {
        position += 1
        return
      }
      if byte == UInt8(ascii: "\\") {
        try escape { _ in }
      } else {
        try skipRaw(byte)
      }
    }
  }

  /// Skips a run of ASCII without quotes and backslashes, or one scalar beyond ASCII.
  @inline(__always)
  private mutating func skipRaw(_ byte: UInt8) throws(JSONError) {
    if byte < 0x20 { throw JSONError(.controlCharacter, at: position) }
    if byte < 0x80 {
      position += plainRun(from: position)
    } else {
      position += try scalarLength(byte)
    }
  }

  /// The length of the well-formed UTF-8 sequence at `offset`, which starts with `lead` >= 0x80.
  private func scalarLength(_ lead: UInt8) throws(JSONError) -> Int {
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch lead {
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    case 0xF1...0xF3: length = 4
    default: throw JSONError(.invalidUTF8, at: position)
    }
    guard position + length <= count else { throw JSONError(.invalidUTF8, at: position) }
    guard second.contains(base[position + 1]) else { throw JSONError(.invalidUTF8, at: position) }
    for index in 2..<max(length, 2) where base[position + index] & 0xC0 != 0x80 {
      throw JSONError(.invalidUTF8, at: position)
    }
    return length
  }

  /// Reads the escape at the position and emits the UTF-8 bytes that it represents.
  @inline(__always)
  private mutating func escape(_ emit: (UInt8) -> Void) throws(JSONError) {
    guard position + 1 < count else { throw JSONError(.unexpectedEnd, at: count) }
    switch base[position + 1] {
    case UInt8(ascii: "\""): emit(0x22)
    case UInt8(ascii: "\\"): emit(0x5C)
    case UInt8(ascii: "/"): emit(0x2F)
    case UInt8(ascii: "b"): emit(0x08)
    case UInt8(ascii: "f"): emit(0x0C)
    case UInt8(ascii: "n"): emit(0x0A)
    case UInt8(ascii: "r"): emit(0x0D)
    case UInt8(ascii: "t"): emit(0x09)
    case UInt8(ascii: "u"):
      for unit in UTF8.encode(try escapedScalar()) ?? UTF8.encodedReplacementCharacter { emit(unit) }
      return
    default: throw JSONError(.invalidEscape, at: position)
    }
    position += 2
  }

  /// Reads `\uXXXX`, or a surrogate pair of two.
  private mutating func escapedScalar() throws(JSONError) -> Unicode.Scalar {
    let start = position
    let first = UInt32(try hexadecimal())
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard first < 0xDC00, position + 1 < count, base[position] == UInt8(ascii: "\\"),
      base[position + 1] == UInt8(ascii: "u")
    else { throw JSONError(.loneSurrogate, at: start) }
    let second = UInt32(try hexadecimal())
    guard (0xDC00...0xDFFF).contains(second),
      let scalar = Unicode.Scalar(0x10000 + ((first & 0x3FF) << 10) + (second & 0x3FF))
    else { throw JSONError(.loneSurrogate, at: start) }
    return scalar
  }

  /// Consumes `\uXXXX` and returns its value.
  private mutating func hexadecimal() throws(JSONError) -> UInt16 {
    guard position + 6 <= count else { throw JSONError(.unexpectedEnd, at: count) }
    var value: UInt16 = 0
    for index in (position + 2)..<(position + 6) {
      let byte = base[index]
      let digit: UInt8
      switch byte {
      case 0x30...0x39: digit = byte - 0x30
      case 0x41...0x46: digit = byte - 0x37
      case 0x61...0x66: digit = byte - 0x57
      default: throw JSONError(.invalidEscape, at: index)
      }
      value = value << 4 | UInt16(digit)
    }
    position += 6
    return value
  }
}
