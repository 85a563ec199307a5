// Names of sessions: 24 letters and digits drawn from the system's randomness, so that nobody can end another's session.

/// Makes names of sessions.
enum SessionName {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  static func make() -> String {
    var random = SystemRandomNumberGenerator()
    let symbols = (0..<24).map { _ in alphabet[Int.random(in: alphabet.indices, using: &random)] }
    return String(decoding: symbols, as: UTF8.self)
  }
}
