// Tests the errors of the compiler of Firestore rules, and their positions.

import FirestoreModel
import SecurityRules
import Testing

@Suite struct RulesErrorTests {
  private func errors(_ source: String) -> [RulesIssue] {
    do {
      _ = try FirestoreRuleset(compiling: source)
      return []
    } catch {
      return error.issues
    }
  }

  private func file(_ body: String) -> String {
    "rules_version = '2';\nservice cloud.firestore {\n  match /databases/{d}/documents {\n\(body)\n  }\n}\n"
  }

  @Test("a syntax error names its line and column")
  func position() {
    #expect(
      errors(file("match /c/{id} { allow read: if true &&; }")).first?.position
        == SourcePosition(line: 4, column: 39))
  }

  @Test("columns count code points")
  func columns() {
    let issues = errors(file("match /c/{id} { allow read: if '😀' == é; }"))
    #expect(issues.first?.position?.line == 4)
    #expect(issues.first?.position?.column == 40)
  }

  @Test("version 1 of the language has no let")
  func letInVersionOne() {
    let body = file("function f() { let v = 1; return v == 1; } match /c/{id} { allow read: if f(); }")
    #expect(errors(body).isEmpty)
    let issues = errors(body.replacing("rules_version = '2';", with: ""))
    #expect(issues.first { $0.severity == .error }?.position == SourcePosition(line: 4, column: 20))
  }

  @Test("recursion is an error, also of functions that nothing calls")
  func recursion() {
    let issues = errors(
      file("function f() { return g(); } function g() { return f(); } match /c/{id} { allow read; }"))
    #expect(issues.contains { $0.severity == .error && $0.text.hasPrefix("Detected a call cycle") })
  }

  @Test("a chain of 21 calls and a pattern of 100 segments are accepted, longer ones are errors")
  func lengths() {
    func chain(_ count: Int) -> [RulesIssue] {
      let functions = (1...count).map { number in
        "function f\(number)() { return \(number == count ? "true" : "f\(number + 1)()"); }"
      }
      return errors(file(functions.joined(separator: "\n") + "match /c/{id} { allow read: if f1(); }"))
    }
    #expect(chain(21).isEmpty)
    #expect(chain(22).first?.severity == .error)
    // The pattern of the outer block has three segments.
    func pattern(_ count: Int) -> [RulesIssue] {
      errors(file("match \(String(repeating: "/a", count: count - 3)) { allow read; }"))
    }
    #expect(pattern(100).isEmpty)
    #expect(pattern(101).first?.text == "Maximum allowed path length of 100 is reached.")
  }

  @Test(
    "operators have the precedence that the language defines",
    arguments: [
      "true || true && false", "true && false || true", "1 < 2 + 3", "3 <= 1 + 2", "4 > 1 + 2", "3 >= 1 + 2",
      "2 + 3 * 4 == 14", "7 - 6 / 3 == 5", "7 - 6 % 4 == 5", "1 < 2 == true", "1 + 1 == 2 && 2 - 1 == 1",
      "8 - 4 - 2 == 2", "8 / 4 / 2 == 1", "!false && true", "true ? true : true && false",
    ])
  func precedence(condition: String) throws {
    let decision = try ruleset(allowing: condition).decideGet([("c/x", nil)], context())
    #expect(decision.isAllowed, "\(condition)")
  }

  @Test("integers and floats are comparable; a comparison of other types gives a warning")
  func comparisons() throws {
    #expect(try ruleset(allowing: "1 == 1.0 || 1.5 != 1").warnings.isEmpty)
    #expect(try ruleset(allowing: "1 == '1'").warnings.count == 1)
  }

  @Test("deep nesting and long chains are errors, and use no call stack")
  func nesting() {
    for condition in [
      String(repeating: "(", count: 20_000) + "true" + String(repeating: ")", count: 20_000),
      String(repeating: "!", count: 100_000) + "true",
      Array(repeating: "true", count: 20_000).joined(separator: " && "),
      "a" + String(repeating: ".a", count: 60_000),
      String(repeating: "[", count: 50_000),
    ] {
      let issues = errors(file("match /c/{id} { allow read: if \(condition); }"))
      #expect(issues.first?.severity == .error)
    }
  }

  @Test("a file beyond the limit of bytes is rejected")
  func size() {
    #expect(!errors(file("// " + String(repeating: "x", count: 300_000))).isEmpty)
  }

  @Test("every prefix of a rules file compiles or is rejected, and never crashes")
  func prefixes() {
    let source = file(
      "function f(a) { let b = a[1:2]; return {'k': /x/$(b)/{y=**}, 'r': 1.5 is float ? -1 : b'\\x41'}.k; }\nmatch /c/{id=**} { allow read, write: if f('abc') != null && 'a'.matches('[a-z]+'); }"
    )
    let scalars = Array(source.unicodeScalars)
    for count in 0...scalars.count {
      _ = errors(String(String.UnicodeScalarView(scalars[..<count])))
    }
    #expect(errors(source).isEmpty)
  }
}
