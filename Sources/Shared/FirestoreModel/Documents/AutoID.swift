// Ids for new documents, for those who do not choose one.

/// Random document ids.
public enum AutoID {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  /// Twenty letters and digits, each equally likely. The generator must be cryptographically secure where
  /// ids must not collide or be guessed; tests pass a seeded one.
  public static func make(using random: inout some RandomNumberGenerator) -> String {
    var id: [UInt8] = []
    id.reserveCapacity(20)
    while id.count < 20 { id.append(alphabet[Int.random(in: 0..<alphabet.count, using: &random)]) }
    return String(decoding: id, as: UTF8.self)
  }
}
