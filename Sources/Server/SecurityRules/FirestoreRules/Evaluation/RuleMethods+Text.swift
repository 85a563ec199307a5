// Implements the methods of text and bytes.

import JSON

/// The methods of the language's types.
enum RuleMethods {
  /// Calls a method of text.
  static func call(
    _ method: Method, _ text: RuleText, _ arguments: [RuleValue], _ regex: RuleRegex?,
    _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    let isConversion = method != .size && method != .matches && method != .toUtf8
    try budget.spend(work: text.byteCount * (isConversion ? RuleCost.convertedByte : 1))
    switch method {
    case .size: return .int(Int64(text.count))
    case .lower: return .text(mapASCII(text.string) { $0 >= 0x41 && $0 <= 0x5A ? $0 + 0x20 : $0 })
    case .upper: return .text(mapASCII(text.string) { $0 >= 0x61 && $0 <= 0x7A ? $0 - 0x20 : $0 })
    case .trim: return .text(String(RuleNumbers.trimmed(text.string)))
    case .toUtf8: return .bytes(Array(text.string.utf8))
    case .matches, .split, .replace:
      guard case .string(let pattern) = arguments[0] else {
        throw .unsupported("string.\(method.rawValue)(\(arguments[0].typeName))")
      }
      var replacement = RuleText("")
      if method == .replace {
        guard case .string(let text) = arguments[1] else {
          throw .unsupported("string.replace(string, \(arguments[1].typeName))")
        }
        replacement = text
      }
      let compiled: RuleRegex
      if let regex {
        compiled = regex
      } else {
        compiled = try RuleRegex(pattern, for: method, &budget)
      }
      switch method {
      case .matches: return .bool(try compiled.matches(text.string, &budget))
      case .split: return .list(.built(try compiled.split(text.string, &budget).map(RuleValue.text)))
      default: return .text(try compiled.replace(in: text.string, with: replacement.string, &budget))
      }
    default: throw .functionNotFound(method.rawValue)
    }
  }

  private static func hexadecimalDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }

  private static func mapASCII(_ text: String, _ transform: (UInt8) -> UInt8) -> String {
    String(decoding: text.utf8.map(transform), as: UTF8.self)
  }

  /// Calls a method of bytes.
  static func call(_ method: Method, _ bytes: [UInt8], _ budget: inout RuleBudget) throws(RuleFault)
    -> RuleValue
  {
    let byteCost = method == .toBase64 ? RuleCost.base64Byte : RuleCost.convertedByte
    if method != .size { try budget.spend(work: bytes.count * byteCost) }
    switch method {
    case .size: return .int(Int64(bytes.count))
    case .toBase64: return .text(Base64.encode(bytes, .urlSafe))
    case .toHexString:
      var digits: [UInt8] = []
      digits.reserveCapacity(2 * bytes.count)
      for byte in bytes {
        digits.append(hexadecimalDigit(byte >> 4))
        digits.append(hexadecimalDigit(byte & 15))
      }
      return .text(String(decoding: digits, as: UTF8.self))
    default: throw .functionNotFound(method.rawValue)
    }
  }
}
