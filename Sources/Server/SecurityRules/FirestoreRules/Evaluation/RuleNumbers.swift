/// Converts numbers to text and text to numbers, in the forms of Java that rules use.
enum RuleNumbers {
  /// A float as text: `1.5`, `2.0`, `1.0E7`, `1.0E-4`, `NaN`, `Infinity`.
  static func text(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    let sign = value.sign == .minus ? "-" : ""
    if value.isInfinite { return sign + "Infinity" }
    if value == 0 { return sign + "0.0" }
    let (digits, exponent) = shortestDigits(value.magnitude)
    // The value is 0.digits · 10^exponent.
    if value.magnitude >= 1e-3, value.magnitude < 1e7 {
      if exponent <= 0 { return sign + "0." + String(repeating: "0", count: -exponent) + digits }
      if exponent >= digits.count {
        return sign + digits + String(repeating: "0", count: exponent - digits.count) + ".0"
      }
      return sign + digits.prefix(exponent) + "." + digits.dropFirst(exponent)
    }
    let fraction = digits.count > 1 ? String(digits.dropFirst()) : "0"
    return sign + digits.prefix(1) + "." + fraction + "E" + String(exponent - 1)
  }

  /// The shortest decimal digits that identify a positive float, and the exponent e for which the float is
  /// 0.digits · 10^e.
  private static func shortestDigits(_ value: Double) -> (digits: String, exponent: Int) {
    let parts = value.description.split(separator: "e")
    let mantissa = parts[0].split(separator: ".", omittingEmptySubsequences: false)
    let whole = String(mantissa[0])
    let fraction = mantissa.count > 1 ? String(mantissa[1]) : ""
    var exponent = whole.utf8.count + (parts.count > 1 ? Int(parts[1]) ?? 0 : 0)
    var digits = Substring(whole + fraction)
    while digits.hasPrefix("0"), digits.utf8.count > 1 {
      digits.removeFirst()
      exponent -= 1
    }
    while digits.hasSuffix("0"), digits.utf8.count > 1 { digits.removeLast() }
    return (String(digits), exponent)
  }

  /// An integer from text: an optional sign and decimal digits, no blanks.
  static func int(_ text: String) -> Int64? {
    let bytes = text.utf8
    let digits =
      bytes.first == UInt8(ascii: "-") || bytes.first == UInt8(ascii: "+") ? bytes.dropFirst() : bytes[...]
    guard !digits.isEmpty, digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return Int64(text)
  }

  /// A float from text, as Java's `Double.parseDouble`: blanks around it, an exponent, `NaN`, `Infinity`, a suffix `d`
  /// or `f`, and hexadecimal floats.
  static func float(_ text: String) -> Double? {
    var body = trimmed(text)
    var sign = 1.0
    if body.hasPrefix("-") || body.hasPrefix("+") {
      sign = body.hasPrefix("-") ? -1 : 1
      body = body.dropFirst()
    }
    if body == "NaN" { return .nan }
    if body == "Infinity" { return sign * .infinity }
    let isHexadecimal = body.hasPrefix("0x") || body.hasPrefix("0X")
    if let last = body.last, "dDfF".contains(last), !isHexadecimal || body.lowercased().contains("p") {
      body = body.dropLast()
    }
    if isHexadecimal {
      guard body.lowercased().contains("p") else { return nil }
      return Double(String(body)).map { sign * $0 }
    }
    guard isDecimal(body) else { return nil }
    var number = String(body)
    if number.hasPrefix(".") { number = "0" + number }
    number = number.replacing(".e", with: ".0e").replacing(".E", with: ".0E")
    if number.hasSuffix(".") { number += "0" }
    return Double(number).map { sign * $0 }
  }

  /// Whether text is digits with an optional point and an optional exponent.
  private static func isDecimal(_ text: Substring) -> Bool {
    var rest = text.utf8[...]
    func digits() -> Int {
      let run = rest.prefix { $0 >= 0x30 && $0 <= 0x39 }
      rest = rest.dropFirst(run.count)
      return run.count
    }
    var count = digits()
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      count += digits()
    }
    guard count > 0 else { return false }
    if let mark = rest.first, mark == UInt8(ascii: "e") || mark == UInt8(ascii: "E") {
      rest = rest.dropFirst()
      if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
        rest = rest.dropFirst()
      }
      guard digits() > 0 else { return false }
    }
    return rest.isEmpty
  }

  /// Text without leading and trailing characters up to U+0020.
  static func trimmed(_ text: String) -> Substring {
    let scalars = text.unicodeScalars
    guard let first = scalars.firstIndex(where: { $0.value > 0x20 }),
      let last = scalars.lastIndex(where: { $0.value > 0x20 })
    else { return "" }
    return Substring(scalars[first...last])
  }

  /// A float as an integer: truncated; beyond the range the least or greatest integer; NaN is 0.
  static func truncated(_ value: Double) -> Int64 {
    if value.isNaN { return 0 }
    return Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
  }

  /// The nearest integer, halves upward; beyond the range the least or greatest integer; NaN is 0.
  static func rounded(_ value: Double) -> Int64 {
    let floor = value.rounded(.down)
    return truncated(value - floor >= 0.5 ? floor + 1 : floor)
  }
}
