// Doubles as integers of the same order, and the place of int64 between them.
//
// Invariant: an integer is written as the greatest double not above it and, where doubles are coarser than
// integers (2^53 and beyond, up to int64's range), the distance to it, which is below 1,024. Doubles of that
// size carry a zero distance. So equal numbers have equal bytes and unequal ones the right order.

/// The order-preserving form of doubles.
enum OrderedDouble {
  /// Bits that order as unsigned integers: NaN is 0, −0.0 is 0.0.
  static func bits(_ value: Double) -> UInt64 {
    if value.isNaN { return 0 }
    let bits = value == 0 ? 0 : value.bitPattern
    return bits >> 63 == 1 ? ~bits : bits | (1 << 63)
  }

  /// The greatest double not above an integer.
  static func floor(of value: Int64) -> Double {
    let nearest = Double(value)
    // 2^63 is the nearest double of the greatest integers, and above all of them.
    if nearest >= 0x1p63 { return nearest.nextDown }
    return Int64(nearest) > value ? nearest.nextDown : nearest
  }

  /// Whether a distance follows the double: integers there lie between doubles.
  static func hasRemainder(_ value: Double) -> Bool {
    (value >= 0x1p53 && value < 0x1p63) || (value <= -0x1p53 && value >= -0x1p63)
  }

  /// Whether the double with these ordered bits is followed by a distance.
  static func hasRemainder(orderedBits bits: UInt64) -> Bool {
    hasRemainder(value(orderedBits: bits))
  }

  /// The double with these ordered bits.
  static func value(orderedBits bits: UInt64) -> Double {
    if bits == 0 { return .nan }
    return Double(bitPattern: bits >> 63 == 1 ? bits & ~(1 << 63) : ~bits)
  }
}
