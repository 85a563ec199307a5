// Generates push ids: 20 characters that sort by creation time. The caller supplies the clock and the randomness.

/// Generates push ids. A process uses one generator, so that ids of the same millisecond ascend.
public struct PushIDGenerator: Sendable {
  private var lastMilliseconds: Int64?
  private var lastSymbols = [UInt8](repeating: 0, count: 12)

  private static let alphabet = Array("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)

  /// Creates a generator.
  public init() {}

  /// The next id.
  ///
  /// - Parameters:
  ///   - milliseconds: the server's time, or the client's estimate of it, since the Unix epoch.
  ///   - random: the source of the 72 random bits of the first id in a millisecond.
  public mutating func next(
    at milliseconds: Int64, using random: inout some RandomNumberGenerator
  ) -> String {
    if milliseconds != lastMilliseconds || !increment() {
      for i in lastSymbols.indices { lastSymbols[i] = UInt8.random(in: 0..<64, using: &random) }
    }
    lastMilliseconds = milliseconds
    var id: [UInt8] = []
    id.reserveCapacity(20)
    for shift in stride(from: 42, through: 0, by: -6) {
      id.append(PushIDGenerator.alphabet[Int(milliseconds >> Int64(shift) & 63)])
    }
    for symbol in lastSymbols { id.append(PushIDGenerator.alphabet[Int(symbol)]) }
    return String(decoding: id, as: UTF8.self)
  }

  /// The next id with the system's randomness.
  public mutating func next(at milliseconds: Int64) -> String {
    var random = SystemRandomNumberGenerator()
    return next(at: milliseconds, using: &random)
  }

  /// Increments the random part; false on overflow.
  private mutating func increment() -> Bool {
    for i in lastSymbols.indices.reversed() {
      if lastSymbols[i] < 63 {
        lastSymbols[i] += 1
        return true
      }
      lastSymbols[i] = 0
    }
    return false
  }
}
