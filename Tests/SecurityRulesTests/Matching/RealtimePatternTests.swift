// Tests the regular expressions of Realtime Database rules: their syntax, and UTF-16 code units.

import SecurityRules
import Testing

@Suite("Regular expressions of the Realtime Database", .timeLimit(.minutes(1)))
struct RealtimePatternTests {
  private func matches(_ pattern: String, _ text: String, ignoresCase: Bool = false) throws -> Bool {
    var budget = PatternBudget(steps: 1_000_000)
    return try RealtimePattern.compile(pattern, ignoresCase: ignoresCase)
      .matches(in: text.utf16.lazy.map(UInt32.init), budget: &budget)
  }

  @Test(
    "An expression matches as a search in UTF-16 code units",
    arguments: [
      ("foo", "xfoox", true), ("^foo$", "foo\n", false), ("^a|b$", "xb", true), ("^a|b$", "ax", true),
      ("^a|b$", "xax", false), (#"^\b\n\1$"#, "bn1", true), ("|a", "x|a", true), ("|a", "a", false),
      ("(|a)", "|a", true), ("^a}{2}$", "a}}", true), ("^}$", "}", true), ("^a]$", "a]", true),
      ("^[a-]+$", "-a", true), ("^[+--]+$", "+,-", true), (#"^[\w-z]+$"#, "_-z", true),
      ("^[$^|]+$", "|^$", true),
      ("^[^^]$", "^", false), (#"^[\]\\]+$"#, #"\]"#, true), ("^.$", "\n", false), ("^.$", "\u{2028}", false),
      ("^.$", "\r", false), ("^.$", "é", true), ("^..$", "😀", true), ("^.$", "😀", false),
      ("^.$", "e\u{301}", false), ("é", "e\u{301}", false), (#"^\s$"#, "\u{A0}", true),
      (#"^\S$"#, "\u{FEFF}", false),
      (#"^\w$"#, "é", false), ("^a{0}b$", "b", true), ("^a{12}$", "aaaaaaaaaaaa", true),
      ("^1{2}2{2}$", "1122", true),
      ("^[/]/$", "//", true),
    ])
  func search(pattern: String, text: String, expected: Bool) throws {
    #expect(try matches(pattern, text) == expected)
  }

  @Test(
    "The flag i ignores case as JavaScript does",
    arguments: [
      ("^foo[a-c]$", "FOOB", true), ("^[^a]$", "A", false), ("^É$", "é", true), ("^[à-ý]$", "É", true),
      ("^k$", "\u{212A}", false), ("^s$", "\u{17F}", false), ("^ß$", "SS", false), ("^µ$", "μ", true),
      ("^[^é]$", "É", false), (#"^\W$"#, "k", false),
    ])
  func ignoringCase(pattern: String, text: String, expected: Bool) throws {
    #expect(try matches(pattern, text, ignoresCase: true) == expected)
  }

  @Test(
    "A form outside the language is rejected at its offset",
    arguments: [
      ("", 0, "it is empty"), ("^", 1, "an alternative is empty"), ("a|", 2, "an alternative is empty"),
      ("a||b", 2, "an alternative is empty"), ("()", 1, "an alternative is empty"),
      ("|", 1, "an alternative is empty"),
      ("(*)", 2, "an alternative is empty"), ("(a", 0, "a '(' without its ')'"),
      ("a)", 1, "a ')' without its '('"),
      ("[a", 0, "a '[' without its ']'"), ("[]a]", 1, "a set is empty"), ("[^]", 2, "a set is empty"),
      ("[z-a]", 2, "a range ends before it starts"), ("a^", 1, "a '^' may stand at the very start only"),
      ("(^a)", 1, "a '^' may stand at the very start only"),
      ("a$b", 2, "a '$' may stand at the very end only"),
      ("(a$)", 2, "a '$' may stand at the very end only"), ("a{x}", 1, "a quantifier is {n}, {n,} or {n,m}"),
      ("a{2,1}", 1, "a quantifier is {n}, {n,} or {n,m}"), ("a{01}", 1, "a quantifier is {n}, {n,} or {n,m}"),
      ("a{,2}", 1, "a quantifier is {n}, {n,} or {n,m}"), ("a{1,x}", 1, "a quantifier is {n}, {n,} or {n,m}"),
      ("a{1001}", 1, "a repetition of more than 1000 times"),
      ("a+?", 2, "a quantifier may not follow a quantifier"),
      ("a**", 2, "a quantifier may not follow a quantifier"), ("(?:a)", 1, "'(?' is not supported"),
      ("(?=a)", 1, "'(?' is not supported"), ("b(*a)*|*", 7, "a quantifier without an expression before it"),
      ("a\\", 2, "a '\\' at the end"), ("[a\\", 3, "a '\\' at the end"), ("a\nb", 1, "a line break"),
    ])
  func rejected(pattern: String, offset: Int, message: String) {
    #expect(throws: PatternError.syntax(offset: offset, message: message)) {
      try RealtimePattern.compile(pattern, ignoresCase: false)
    }
  }

  @Test("Groups nest to the limit and not beyond")
  func nesting() throws {
    func nested(_ levels: Int) -> String {
      String(repeating: "(", count: levels) + "a" + String(repeating: ")", count: levels)
    }
    #expect(try matches(nested(100), "a"))
    #expect(throws: PatternError.self) { try matches(nested(101), "a") }
  }
}
