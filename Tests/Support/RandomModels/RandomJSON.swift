// Generates random JSON values from a seed. Values that parsers often treat incorrectly are frequent.

package import JSON

/// A source of random JSON values.
package struct RandomJSON: RandomNumberGenerator {
  package var random: SeededGenerator

  package init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  package mutating func next() -> UInt64 { random.next() }

  package mutating func below(_ bound: Int) -> Int { random.below(bound) }

  package mutating func text() -> String {
    let alphabet: [Unicode.Scalar] = [
      "a", "Z", "0", "9", " ", "\"", "\\", "/", "\n", "\t", "\u{0}", "\u{1F}", "\u{7F}", "\u{80}", "é",
      "\u{301}", "\u{7FF}", "\u{800}", "\u{D7FF}", "\u{E000}", "\u{FFFD}", "\u{FFFF}", "😀", "\u{10FFFF}",
      "\u{2028}", "{", "}", "[", "]", ":", ",", "-", "_", "$", "#", ".",
    ]
    var text = ""
    for _ in 0..<below(below(4) == 0 ? 40 : 9) {
      text.unicodeScalars.append(below(2) == 0 ? "x" : alphabet[below(alphabet.count)])
    }
    return text
  }

  package mutating func number() -> JSONValue {
    switch below(6) {
    case 0: return .int(Int64(below(2000)) - 1000)
    case 1: return .int(Int64(bitPattern: next()))
    case 2: return .int([.min, .max, 0, -1, 1 << 53, -(1 << 53) - 1][below(6)])
    case 3: return .double(Double(below(2_000_000)) / 1000 - 1000)
    default:
      let value = Double(bitPattern: next())
      return value.isFinite && value != 0 ? .double(value) : .double(0.5)
    }
  }

  package mutating func value(depth: Int = 0) -> JSONValue {
    switch below(depth > 4 ? 5 : 8) {
    case 0: return .null
    case 1: return .bool(below(2) == 0)
    case 2: return number()
    case 3, 4: return .string(text())
    case 5: return .array((0..<below(6)).map { _ in value(depth: depth + 1) })
    default:
      var object = JSONObject()
      for _ in 0..<below(depth == 0 ? 40 : 7) { object[text()] = value(depth: depth + 1) }
      return .object(object)
    }
  }
}
