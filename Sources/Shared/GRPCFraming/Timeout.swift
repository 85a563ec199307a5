// The timeout of a call (`grpc-timeout`): at most eight decimal digits and a unit. It is stored in nanoseconds and
// saturates: 99999999H exceeds the range.

/// The timeout of a call, from the arrival of its request.
public struct GRPCTimeout: Sendable, Hashable {
  /// The length in nanoseconds, not negative.
  public var nanoseconds: Int64

  /// Makes a timeout; a negative length counts as zero.
  public init(nanoseconds: Int64) {
    self.nanoseconds = max(0, nanoseconds)
  }

  /// Parses a header value such as `250m` or `10S`; nil if it is malformed.
  public init?(headerValue: String) {
    var value: Int64 = 0
    let bytes = headerValue.utf8
    guard (2...9).contains(bytes.count), let unit = bytes.last, let scale = Self.scale(of: unit) else {
      return nil
    }
    for byte in bytes.dropLast() {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      value = value * 10 + Int64(byte - UInt8(ascii: "0"))
    }
    let (product, overflow) = value.multipliedReportingOverflow(by: scale)
    self.nanoseconds = overflow ? .max : product
  }

  /// The header value, in the finest unit for which eight digits suffice. It is rounded up, so that the server never
  /// times out before the client.
  public var headerValue: String {
    for (unit, scale) in Self.units {
      let count = nanoseconds / scale + (nanoseconds % scale == 0 ? 0 : 1)
      if count <= 99_999_999 { return "\(count)\(unit)" }
    }
    return "99999999H"
  }

  private static let units: [(unit: Character, scale: Int64)] = [
    ("n", 1), ("u", 1000), ("m", 1_000_000), ("S", 1_000_000_000), ("M", 60_000_000_000),
    ("H", 3_600_000_000_000),
  ]

  private static func scale(of unit: UInt8) -> Int64? {
    units.first { $0.unit.asciiValue == unit }?.scale
  }
}
