// Tests the syntax of RE2 in Firestore rules.

import FirestoreModel
import SecurityRules
import Testing

@Suite struct RE2PatternTests {
  private func matches(_ pattern: String, _ text: String) throws -> Bool {
    var budget = PatternBudget(steps: 1_000_000)
    return try RE2Pattern.compile(pattern, matchesCompleteText: true)
      .matches(in: text.unicodeScalars.map(\.value), budget: &budget)
  }

  @Test(
    "patterns match as in RE2",
    arguments: [
      ("a|abc", "abc", true), ("(?i)straße", "STRAßE", true), ("(?i)k", "\u{212A}", true),
      ("\\p{Greek}+", "αβγ", true),
      ("\\p{Greek}+", "abc", false), ("\\pL\\P{L}", "é1", true), ("[[:^digit:]]", "x", true),
      ("[^\\d\\s]", "5", false),
      ("\\Qa.b\\E+", "a.bbb", true), ("a{2,3}", "aaaa", false), ("a{,2}", "a{,2}", true),
      ("(?s).", "\n", true),
      (".", "\n", false), ("(?m)a$\n^b", "a\nb", true), ("\\x{1F600}", "😀", true), ("(?U)a+", "aaa", true),
      ("\\b", "", false), ("(?P<n>a)(?:b)(?<m>c)", "abc", true), ("[]a]+", "]a", true), ("\\101", "A", true),
    ])
  func matching(pattern: String, text: String, expected: Bool) throws {
    #expect(try matches(pattern, text) == expected)
  }

  @Test(
    "patterns that RE2 rejects are rejected",
    arguments: [
      "(", "a)", "[a", "[]", "a**", "a*+", "*a", "a{1001}", "a{2,1}", "(?=a)", "(?!a)", "(?<=a)b", "(a)\\1",
      "\\8", "\\C",
      "\\u0041", "(?x)a", "(?P<a>x)(?P<a>y)", "(?P<>x)", "\\p{Nope}", "[[:nope:]]", "[z-a]", "\\", "(?",
      "(?-)", "\\x{110000}",
    ])
  func rejection(pattern: String) {
    #expect(throws: PatternError.self) { try RE2Pattern.compile(pattern, matchesCompleteText: true) }
  }

  @Test("a lazy repetition takes the shortest match, a greedy one the longest")
  func lazy() throws {
    for condition in [
      "'aaa'.replace('a+?', 'b') == 'bbb'", "'aaa'.replace('a+', 'b') == 'b'",
      "'a1b2'.split('[0-9]+?') == ['a', 'b']", "'xaab'.replace('a{1,2}?', '-') == 'x--b'",
    ] {
      let decision = try ruleset(allowing: condition).decideGet([("c/x", nil)], context())
      #expect(decision.isAllowed, "\(condition)")
    }
  }
}
