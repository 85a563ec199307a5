// Names that nobody can guess, of sessions and what else its holder alone may reach.

/// Makes names of letters and digits, from the system's randomness: each has almost six bits of it.
package enum RandomName {
  private static let symbols = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  /// A name of so many symbols.
  package static func make(_ count: Int) -> String {
    var random = SystemRandomNumberGenerator()
    let name = (0..<count).map { _ in symbols[Int.random(in: symbols.indices, using: &random)] }
    return String(decoding: name, as: UTF8.self)
  }

  /// Whether a text has no other symbols than names have.
  package static func isMadeOfSymbols(_ text: String) -> Bool { text.utf8.allSatisfy(symbols.contains) }
}
