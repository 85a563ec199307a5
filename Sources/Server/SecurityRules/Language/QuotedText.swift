/// Reads the body of a text or bytes literal after its opening quote.
struct QuotedText {
  /// The code units of text.
  private(set) var units: [UInt16] = []
  /// The bytes of a bytes literal.
  private(set) var bytes: [UInt8] = []
  /// The index of the first character that was not read.
  private(set) var offset: Int
  /// Whether reading stopped at an escape that the language does not have.
  private(set) var isEscapeInvalid = false

  private let scalars: [Unicode.Scalar]
  private let quote: Unicode.Scalar
  private let isBytes: Bool

  init(scalars: [Unicode.Scalar], start: Int, quote: Unicode.Scalar, isBytes: Bool) {
    self.scalars = scalars
    offset = start
    self.quote = quote
    self.isBytes = isBytes
  }

  /// Reads up to and including the closing quote.
  ///
  /// - Returns: false if the line ends first, or at an invalid escape.
  mutating func read() -> Bool {
    while offset < scalars.count {
      let scalar = scalars[offset]
      if scalar == quote {
        offset += 1
        return true
      }
      if scalar == "\n" || scalar == "\r" { return false }
      if scalar == "\\" {
        guard escape() else {
          isEscapeInvalid = true
          return false
        }
      } else {
        append(scalar)
        offset += 1
      }
    }
    return false
  }

  private mutating func append(_ scalar: Unicode.Scalar) {
    if isBytes {
      bytes.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
    } else {
      units.append(contentsOf: UTF16.encode(scalar).map(Array.init) ?? [])
    }
  }

  private mutating func append(code: UInt16) {
    if isBytes { bytes.append(UInt8(truncatingIfNeeded: code)) } else { units.append(code) }
  }

  private mutating func escape() -> Bool {
    guard offset + 1 < scalars.count else { return false }
    let scalar = scalars[offset + 1]
    switch scalar {
    case "n": append(code: 10)
    case "r": append(code: 13)
    case "t": append(code: 9)
    case "b": append(code: 8)
    case "f": append(code: 12)
    case "\\", "'", "\"": append(scalar)
    case "u" where !isBytes: return digits(from: offset + 2, count: 4, radix: 16)
    case "x": return digits(from: offset + 2, count: 2, radix: 16)
    case "0"..."3": return digits(from: offset + 1, count: 3, radix: 8)
    default: return false
    }
    offset += 2
    return true
  }

  private mutating func digits(from start: Int, count: Int, radix: Int) -> Bool {
    guard start + count <= scalars.count else { return false }
    var code: UInt16 = 0
    for scalar in scalars[start..<(start + count)] {
      guard scalar.isASCII, let digit = Character(scalar).hexDigitValue, digit < radix else { return false }
      code = code &* UInt16(radix) &+ UInt16(digit)
    }
    append(code: code)
    offset = start + count
    return true
  }
}
