// Reads numbers. Integers that fit 64 bits are exact; all other numbers become the nearest double. Negative zero
// becomes zero, because the writer writes both as `0`, but their hashes would differ.

extension JSONReader {
  /// Powers of ten that a double holds exactly.
  private static let exactPowers: [Double] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
  ]

  /// Reads the number at `offset`, whose first byte is a digit or a minus.
  @usableFromInline
  mutating func numberBody() throws(JSONError) -> Number {
    let start = position
    let isNegative = base[position] == UInt8(ascii: "-")
    if isNegative { position += 1 }

    // The digits as one integer while it fits, and the power of ten that scales it.
    var mantissa: UInt64 = 0
    var fits = true
    var scale = 0
    let wholeStart = position
    digits(into: &mantissa, &fits)
    let whole = position - wholeStart
    guard whole > 0 else {
      throw position < count ? JSONError(.invalidNumber, at: position) : JSONError(.unexpectedEnd, at: count)
    }
    if whole > 1, base[wholeStart] == UInt8(ascii: "0") { throw JSONError(.invalidNumber, at: wholeStart) }

    var isInteger = true
    if position < count, base[position] == UInt8(ascii: ".") {
      isInteger = false
      position += 1
      let from = position
      digits(into: &mantissa, &fits)
      scale = from - position
      guard position > from else { throw endOrInvalid() }
    }
    if position < count, base[position] | 0x20 == UInt8(ascii: "e") {
      isInteger = false
      scale += try exponent()
    }

    if isInteger, fits {
      if !isNegative, mantissa <= UInt64(Int64.max) { return .int(Int64(mantissa)) }
      if isNegative, mantissa <= UInt64(Int64.max) + 1 {
        return .int(Int64(truncatingIfNeeded: 0 &- mantissa))
      }
    }
    if mantissa == 0, fits { return isInteger ? .int(0) : .double(0) }
    if fits, mantissa <= 1 << 53, abs(scale) <= 22 {
      let power = Self.exactPowers[abs(scale)]
      let value = scale < 0 ? Double(mantissa) / power : Double(mantissa) * power
      return .double(isNegative ? -value : value)
    }
    let text = String(
      decoding: UnsafeBufferPointer(start: base + start, count: position - start), as: UTF8.self)
    guard let value = Double(text), value.isFinite else { throw JSONError(.numberOutOfRange, at: start) }
    return .double(value == 0 ? 0 : value)
  }

  @inline(__always)
  private mutating func digits(into mantissa: inout UInt64, _ fits: inout Bool) {
    while position < count {
      let digit = base[position] &- UInt8(ascii: "0")
      guard digit < 10 else { return }
      let (tens, overflow) = mantissa.multipliedReportingOverflow(by: 10)
      let (sum, carry) = tens.addingReportingOverflow(UInt64(digit))
      if overflow || carry { fits = false } else { mantissa = sum }
      position += 1
    }
  }

  /// Reads `e`, an optional sign and digits. Exponents are clamped to ±100,000, beyond the range of doubles.
  private mutating func exponent() throws(JSONError) -> Int {
    position += 1
    var isNegative = false
    if position < count, base[position] == UInt8(ascii: "-") || base[position] == UInt8(ascii: "+") {
      isNegative = base[position] == UInt8(ascii: "-")
      position += 1
    }
    let from = position
    var value = 0
    while position < count, base[position] &- UInt8(ascii: "0") < 10 {
      value = min(value * 10 + Int(base[position] &- UInt8(ascii: "0")), 100_000)
      position += 1
    }
    guard position > from else { throw endOrInvalid() }
    return isNegative ? -value : value
  }

  private func endOrInvalid() -> JSONError {
    position < count ? JSONError(.invalidNumber, at: position) : JSONError(.unexpectedEnd, at: count)
  }
}
