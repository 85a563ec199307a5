// Form fields: parses application/x-www-form-urlencoded bodies of WebChannel requests.

import NIOCore

/// The decoded name and value pairs of a form, in their original order.
struct FormFields {
  private(set) var fields: [(name: String, value: ByteBuffer)] = []

  /// Parses the pairs; nil for invalid escapes, names that are not UTF-8, or more than `limit` pairs.
  init?(_ text: ByteBuffer, limit: Int) {
    var rest = text
    while rest.readableBytes > 0 {
      let length = rest.readableBytesView.firstIndex(of: UInt8(ascii: "&")).map { $0 - rest.readerIndex }
      guard let pair = rest.readSlice(length: length ?? rest.readableBytes) else { return nil }
      if length != nil { rest.moveReaderIndex(forwardBy: 1) }
      if pair.readableBytes == 0 { continue }
      guard fields.count < limit, let field = Self.field(pair) else { return nil }
      fields.append(field)
    }
  }

  /// The first value of a name as a string; nil if it is absent or not UTF-8.
  subscript(name: String) -> String? {
    guard let value = fields.first(where: { $0.name == name })?.value else { return nil }
    return Self.string(value)
  }

  private static func field(_ pair: ByteBuffer) -> (name: String, value: ByteBuffer)? {
    let bytes = pair.readableBytesView
    let equals = bytes.firstIndex(of: UInt8(ascii: "=")) ?? bytes.endIndex
    guard let name = decode(bytes[..<equals]),
      let value = decode(bytes[min(equals + 1, bytes.endIndex)...]),
      let string = string(name)
    else { return nil }
    return (string, value)
  }

  /// Returns the bytes as a string; nil if they are not UTF-8.
  private static func string(_ bytes: ByteBuffer) -> String? {
    let string = String(decoding: bytes.readableBytesView, as: UTF8.self)
    return string.utf8.elementsEqual(bytes.readableBytesView) ? string : nil
  }

  /// Decodes percent escapes, and plus signs as spaces; nil for an invalid escape.
  private static func decode(_ encoded: ByteBufferView) -> ByteBuffer? {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(encoded.count)
    let isValid = encoded.withUnsafeBytes { bytes in
      var rest = bytes.makeIterator()
      while let byte = rest.next() {
        if byte == UInt8(ascii: "%") {
          guard let high = rest.next().flatMap(digit), let low = rest.next().flatMap(digit) else {
            return false
          }
          decoded.append(high << 4 | low)
        } else {
          decoded.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
        }
      }
      return true
    }
    return isValid ? ByteBuffer(bytes: decoded) : nil
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
