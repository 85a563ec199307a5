// Writes values in DER (ITU-T X.690), restricted to the types that certificates contain.

/// DER encoding.
enum DER {
  /// A value with its tag and length.
  static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    var length: [UInt8] = []
    if content.count < 128 {
      length = [UInt8(content.count)]
    } else {
      var rest = content.count
      while rest > 0 {
        length.insert(UInt8(rest & 255), at: 0)
        rest >>= 8
      }
      length.insert(0x80 | UInt8(length.count), at: 0)
    }
    return [tag] + length + content
  }

  static func sequence(_ parts: [UInt8]...) -> [UInt8] { value(0x30, parts.flatMap(\.self)) }

  static func set(_ content: [UInt8]) -> [UInt8] { value(0x31, content) }

  /// A non-negative integer in big-endian order.
  static func integer(_ bytes: [UInt8]) -> [UInt8] {
    var digits = Array(bytes.drop { $0 == 0 })
    // A first byte of 128 or more would make the integer negative.
    if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
    return value(0x02, digits)
  }

  static func bitString(_ bytes: [UInt8]) -> [UInt8] { value(0x03, [0] + bytes) }

  static func utf8String(_ text: String) -> [UInt8] { value(0x0C, Array(text.utf8)) }

  /// An object identifier by its encoded content.
  static func identifier(_ content: [UInt8]) -> [UInt8] { value(0x06, content) }

  static let null: [UInt8] = [0x05, 0x00]

  /// A time in UTC: UTCTime until 2049, GeneralizedTime afterwards (RFC 5280, section 4.1.2.5).
  /// - Parameter seconds: seconds since the Unix epoch.
  static func time(_ seconds: Int64) -> [UInt8] {
    let text = RFC3339.text(seconds * 1000).utf8.filter { (0x30...0x39).contains($0) }.prefix(14)
    let isShort = text.starts(with: "20".utf8) && Array(text)[2] < UInt8(ascii: "5")
    return value(isShort ? 0x17 : 0x18, Array(isShort ? text.dropFirst(2) : text) + [UInt8(ascii: "Z")])
  }
}
