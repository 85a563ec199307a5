// Tests text operations of Realtime Database rules against simple reference implementations.

import RandomModels
import Testing

@testable import SecurityRules

@Suite("Texts in Realtime Database rules", .timeLimit(.minutes(1)))
struct RealtimeTextTests {
  private func naiveOffsets(of part: [UInt8], in text: [UInt8]) -> [Int] {
    var offsets: [Int] = []
    var next = 0
    while next + part.count <= text.count {
      if text[next...].starts(with: part) {
        offsets.append(next)
        next += part.count
      } else {
        next += 1
      }
    }
    return offsets
  }

  @Test("Searching and replacing agree with a simple search")
  func searching() {
    var random = SeededGenerator(seed: 9)
    let letters = ["a", "b", "é", "e\u{301}", "😀", "\r\n"]
    for _ in 0..<4_000 {
      func text(_ maximum: Int) -> String {
        (0..<random.below(maximum)).map { _ in letters[random.below(letters.count)] }.joined()
      }
      let (whole, part, replacement) = (text(12), text(4), text(3))
      let offsets = RealtimeText.offsets(of: part, in: whole)
      let expected = part.isEmpty ? [] : naiveOffsets(of: Array(part.utf8), in: Array(whole.utf8))
      #expect(offsets == expected, "\(part) in \(whole)")
      #expect(RealtimeText.contains(whole, part) == (part.isEmpty || !expected.isEmpty))
      #expect(RealtimeText.begins(whole, with: part) == Array(whole.utf8).starts(with: Array(part.utf8)))
      let suffix = Array(whole.utf8.suffix(part.utf8.count))
      #expect(RealtimeText.ends(whole, with: part) == (suffix == Array(part.utf8)))
      let replaced = RealtimeText.replacing(part, in: whole, at: offsets, with: replacement)
      var bytes: [UInt8] = []
      var next = 0
      for offset in expected {
        bytes += Array(whole.utf8)[next..<offset] + Array(replacement.utf8)
        next = offset + part.utf8.count
      }
      #expect(Array(replaced.utf8) == bytes + Array(whole.utf8)[next...])
    }
  }

  @Test(
    "Numbers become text as in JavaScript",
    arguments: [
      (0, "0"), (-0.0, "0"), (1, "1"), (-3, "-3"), (1.5, "1.5"), (0.1, "0.1"), (100, "100"),
      (1e20, "100000000000000000000"),
      (1e21, "1e+21"), (1.5e300, "1.5e+300"), (123456789012345683968, "123456789012345680000"),
      (1e-6, "0.000001"),
      (1e-7, "1e-7"), (1.25e-9, "1.25e-9"), (-0.000123, "-0.000123"), (9007199254740992, "9007199254740992"),
      (.nan, "NaN"), (.infinity, "Infinity"), (-.infinity, "-Infinity"), (0.1 + 0.2, "0.30000000000000004"),
      (.leastNonzeroMagnitude, "5e-324"), (.greatestFiniteMagnitude, "1.7976931348623157e+308"),
      (1234.5678, "1234.5678"),
    ] as [(Double, String)])
  func numbers(number: Double, text: String) { #expect(RealtimeText.text(of: number) == text) }

  @Test(
    "Strings are converted to lower case as in JavaScript, with the final form of sigma",
    arguments: [
      ("", ""), ("AÉ ß", "aé ß"), ("Σ", "σ"), ("ΑΣ", "ας"), ("ΑΣ ΣΑΣ.", "ας σας."), ("ΑΣΑ", "ασα"),
      ("ΑΣ.Α", "ασ.α"), ("Α.Σ", "α.ς"), ("1Σ", "1σ"), ("ΑΣ1", "ας1"), ("ΑΣ\u{301}", "ας\u{301}"),
      ("ΑΣ\u{301}Α", "ασ\u{301}α"), ("ΑΣΣ", "ασς"), ("İ", "i\u{307}"),
    ])
  func lowerCase(text: String, lower: String) {
    #expect(RealtimeText.lowercased(text).utf8.elementsEqual(lower.utf8))
  }
}
