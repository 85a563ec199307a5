// The clock and the random values of Identity. Tests inject a clock, so that they need not wait for expiry and
// rotation.

package import OrderedStore

/// The source of the time.
package struct IdentityClock: Sendable {
  private let clock: StoreClock

  /// Creates a clock.
  package init(_ clock: StoreClock = .system) { self.clock = clock }

  /// Milliseconds since the Unix epoch.
  package var milliseconds: Int64 { Int64(clock.now() / 1000) }
}

/// Random identifiers and bytes from the system's cryptographic generator.
package enum RandomText {
  private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
  private static let urlSafe = letters + Array("-_".utf8)
  private static let decimals = Array("0123456789".utf8)

  /// Letters and digits, as in account IDs.
  package static func identifier(_ count: Int) -> String { text(letters, count) }

  /// Characters of URL-safe Base64, as in codes that are part of links.
  package static func code(_ count: Int) -> String { text(urlSafe, count) }

  /// Decimal digits, as in verification codes of text messages.
  package static func digits(_ count: Int) -> String { text(decimals, count) }

  /// Random bytes.
  package static func bytes(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  private static func text(_ alphabet: [UInt8], _ count: Int) -> String {
    var generator = SystemRandomNumberGenerator()
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    for _ in 0..<count {
      bytes.append(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)])
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
