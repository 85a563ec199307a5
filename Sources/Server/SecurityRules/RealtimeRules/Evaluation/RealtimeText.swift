// Text operations of the Realtime Database's rule language. Texts are sequences of UTF-16 code units, as in JavaScript;
// none of these operations normalizes them.
//
// Every stored text and every literal is well-formed Unicode. A search in UTF-8 therefore finds the same occurrences as
// a search in code units.

/// Text operations of rules.
enum RealtimeText {
  /// The offsets in UTF-8 at which `part` occurs in `text`, from left to right and without overlaps.
  ///
  /// The search by Knuth, Morris and Pratt: its time is linear in both texts.
  /// - Parameter maximum: the number of offsets after which the search ends.
  static func offsets(of part: String, in text: String, maximum: Int = .max) -> [Int] {
    let pattern = Array(part.utf8)
    guard !pattern.isEmpty else { return [] }
    // For each prefix, the length of its longest proper prefix that is also its suffix.
    var borders = [0]
    var border = 0
    for byte in pattern.dropFirst() {
      while border > 0, pattern[border] != byte { border = borders[border - 1] }
      if pattern[border] == byte { border += 1 }
      borders.append(border)
    }
    var offsets: [Int] = []
    var matched = 0
    var offset = 0
    for byte in text.utf8 {
      guard offsets.count < maximum else { break }
      while matched > 0, pattern[matched] != byte { matched = borders[matched - 1] }
      if pattern[matched] == byte { matched += 1 }
      offset += 1
      if matched == pattern.count {
        offsets.append(offset - matched)
        matched = 0
      }
    }
    return offsets
  }

  static func contains(_ text: String, _ part: String) -> Bool {
    part.utf8.isEmpty || !offsets(of: part, in: text, maximum: 1).isEmpty
  }

  static func begins(_ text: String, with part: String) -> Bool { text.utf8.starts(with: part.utf8) }

  static func ends(_ text: String, with part: String) -> Bool {
    let (length, suffix) = (text.utf8.count, part.utf8.count)
    return length >= suffix && text.utf8.dropFirst(length - suffix).elementsEqual(part.utf8)
  }

  /// Replaces a part at each of its offsets.
  static func replacing(_ part: String, in text: String, at offsets: [Int], with replacement: String)
    -> String
  {
    guard !offsets.isEmpty else { return text }
    let source = Array(text.utf8)
    var result: [UInt8] = []
    result.reserveCapacity(source.count + offsets.count * (replacement.utf8.count - part.utf8.count))
    var next = 0
    for offset in offsets {
      result += source[next..<offset]
      result += replacement.utf8
      next = offset + part.utf8.count
    }
    result += source[next...]
    return String(decoding: result, as: UTF8.self)
  }

  /// A text in lower case, as JavaScript converts it. Unlike Swift, JavaScript uses the final form of sigma at the end of
  /// words.
  static func lowercased(_ text: String) -> String {
    let sigma: Unicode.Scalar = "Σ"
    guard text.unicodeScalars.contains(sigma) else { return text.lowercased() }
    var result = String.UnicodeScalarView()
    let scalars = text.unicodeScalars
    // Whether a letter precedes, possibly with ignorable characters in between.
    var followsLetter = false
    for index in scalars.indices {
      let scalar = scalars[index]
      if scalar == sigma {
        result.append(followsLetter && !precedesLetter(scalars[index...].dropFirst()) ? "ς" : "σ")
      } else {
        result.append(contentsOf: scalar.properties.lowercaseMapping.unicodeScalars)
      }
      if scalar.properties.isCased {
        followsLetter = true
      } else if !scalar.properties.isCaseIgnorable {
        followsLetter = false
      }
    }
    return String(result)
  }

  /// Whether a text begins with a letter, possibly after ignorable characters.
  private static func precedesLetter(_ scalars: some Sequence<Unicode.Scalar>) -> Bool {
    let next = scalars.first { $0.properties.isCased || !$0.properties.isCaseIgnorable }
    return next?.properties.isCased ?? false
  }

  /// A number as JavaScript converts it to text: the shortest digits that give the same double.
  static func text(of number: Double) -> String {
    guard number.isFinite else { return number.isNaN ? "NaN" : number < 0 ? "-Infinity" : "Infinity" }
    guard number != 0 else { return "0" }
    let sign = number < 0 ? "-" : ""
    let (digits, exponent) = shortestDigits(of: number.magnitude)
    let count = digits.utf8.count
    // The value is 0.digits times ten to the power of `exponent`.
    switch exponent {
    case count...21: return sign + digits + String(repeating: "0", count: exponent - count)
    case 1...21: return sign + digits.prefix(exponent) + "." + digits.dropFirst(exponent)
    case -5...0: return sign + "0." + String(repeating: "0", count: -exponent) + digits
    default:
      let power = exponent - 1
      let fraction = count > 1 ? "." + digits.dropFirst() : ""
      return sign + digits.prefix(1) + fraction + "e" + (power < 0 ? "-" : "+") + String(power.magnitude)
    }
  }

  /// The shortest decimal digits d₁d₂… and the exponent e of a positive number, so that the number is 0.d₁d₂… · 10^e.
  private static func shortestDigits(of number: Double) -> (digits: String, exponent: Int) {
    // Swift describes a double by its shortest digits, with or without an exponent.
    let parts = number.description.split(separator: "e", maxSplits: 1)
    let mantissa = parts[0].split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let whole = mantissa[0]
    let fraction = mantissa.count > 1 ? mantissa[1] : ""
    var exponent = whole.count + (parts.count > 1 ? Int(parts[1]) ?? 0 : 0)
    var digits = Substring(String(whole) + fraction)
    while digits.first == "0" {
      digits = digits.dropFirst()
      exponent -= 1
    }
    while digits.last == "0" { digits = digits.dropLast() }
    return (String(digits), exponent)
  }
}
