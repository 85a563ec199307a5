// Generates automatic ids for documents that are created without an id.

/// Random document ids.
public enum AutoID {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  /// Returns 20 letters and digits, each equally likely.
  ///
  /// Pass a cryptographically secure generator, so that ids do not collide and cannot be guessed. Tests pass a seeded
  /// generator.
  public static func make(using random: inout some RandomNumberGenerator) -> String {
    var id: [UInt8] = []
    id.reserveCapacity(20)
    while id.count < 20 { id.append(alphabet[Int.random(in: 0..<alphabet.count, using: &random)]) }
    return String(decoding: id, as: UTF8.self)
  }
}
