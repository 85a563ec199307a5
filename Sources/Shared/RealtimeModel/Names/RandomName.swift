// Generates random names that cannot be guessed. Knowing the name of a session or a similar resource gives access to
// it.

/// Generates random names of letters and digits from the system's generator, with almost six random bits a symbol.
package enum RandomName {
  private static let symbols = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  /// Returns a name of `count` symbols.
  package static func make(_ count: Int) -> String {
    var random = SystemRandomNumberGenerator()
    let name = (0..<count).map { _ in symbols[Int.random(in: symbols.indices, using: &random)] }
    return String(decoding: name, as: UTF8.self)
  }

  /// Whether a string consists only of the symbols of names.
  package static func isMadeOfSymbols(_ text: String) -> Bool { text.utf8.allSatisfy(symbols.contains) }
}
