// Encodes doubles and 64-bit integers so that their bytes sort by value.
//
// Invariant: equal numbers have equal bytes, and unequal numbers sort by value. An integer is encoded as the greatest
// double not above it. Where not every integer is a double (from 2^53 to int64's range), a remainder follows:
// the distance of the integer to that double, below 1,024. Doubles of that size have the remainder zero.

/// The order-preserving form of doubles.
enum OrderedDouble {
  /// Bits that sort as unsigned integers: NaN is 0, and −0.0 has the bits of 0.0.
  static func bits(_ value: Double) -> UInt64 {
    if value.isNaN { return 0 }
    let bits = value == 0 ? 0 : value.bitPattern
    return bits >> 63 == 1 ? ~bits : bits | (1 << 63)
  }

  /// The greatest double not above an integer.
  static func floor(of value: Int64) -> Double {
    let nearest = Double(value)
    // The nearest double of the greatest integers is 2^63, which is above all of them.
    if nearest >= 0x1p63 { return nearest.nextDown }
    return Int64(nearest) > value ? nearest.nextDown : nearest
  }

  /// Whether a remainder follows the double, because some integers near it are not doubles.
  static func hasRemainder(_ value: Double) -> Bool {
    (value >= 0x1p53 && value < 0x1p63) || (value <= -0x1p53 && value >= -0x1p63)
  }

  /// Whether a remainder follows the double with these ordered bits.
  static func hasRemainder(orderedBits bits: UInt64) -> Bool {
    hasRemainder(value(orderedBits: bits))
  }

  /// The double with these ordered bits.
  static func value(orderedBits bits: UInt64) -> Double {
    if bits == 0 { return .nan }
    return Double(bitPattern: bits >> 63 == 1 ? bits & ~(1 << 63) : ~bits)
  }
}
