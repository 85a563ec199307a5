// Compares numbers: integers and doubles by mathematical value, without lossy conversion.
//
// Invariant: NaN < −∞ < … < +∞ is a total order in which NaN equals itself and 0 == 0.0 == −0.0.

/// The order of numbers.
public enum Numbers {
  /// Compares two doubles; NaN is least and equal to itself, zeros are equal.
  public static func compare(_ a: Double, _ b: Double) -> ComparisonOrder {
    if a < b { return .ascending }
    if a > b { return .descending }
    if a == b { return .same }
    if a.isNaN { return b.isNaN ? .same : .ascending }
    return .descending
  }

  /// Compares an integer with a double exactly, also beyond 2^53.
  public static func compare(_ a: Int64, _ b: Double) -> ComparisonOrder {
    if b.isNaN { return .descending }
    if b >= 0x1p63 { return .ascending }
    if b < -0x1p63 { return .descending }
    // Now b's integer part fits into 64 bits; the fraction decides between equal integer parts.
    let whole = b.rounded(.towardZero)
    let integer = Int64(whole)
    if a != integer { return a < integer ? .ascending : .descending }
    let fraction = b - whole
    return fraction > 0 ? .ascending : (fraction < 0 ? .descending : .same)
  }

  /// Whether two doubles are the same stored value: −0.0 differs from 0.0, every NaN is one value.
  static func identical(_ a: Double, _ b: Double) -> Bool { bits(a) == bits(b) }

  /// The bits of a double with one bit pattern for NaN.
  static func bits(_ value: Double) -> UInt64 { value.isNaN ? Double.nan.bitPattern : value.bitPattern }
}
