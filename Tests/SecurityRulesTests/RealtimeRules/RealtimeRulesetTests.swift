// Tests the compilation of rule expressions: problems with their positions, and limits.

import RealtimeModel
import SecurityRules
import Testing

@Suite("Compiling Realtime Database rules", .timeLimit(.minutes(1)))
struct RealtimeRulesetTests {
  /// The problems of a file; empty if it compiles.
  private func problems(_ text: String) -> String {
    do throws(RealtimeModel.RulesError) {
      _ = try RealtimeRuleset(Array(text.utf8))
      return ""
    } catch { return error.description }
  }

  @Test(
    "A mistake in an expression has the position of the rule and names the mistake",
    arguments: [
      ("auth !=", "Parse error: expected an operand, found the end."),
      ("a = b", "Parse error: unexpected character."),
      ("", "Parse error: expected an expression, found the end."),
      ("(true", "Parse error: expected ')', found the end."),
      ("a b", "Parse error: expected an operator or the end of the expression, found 'b'."),
      ("a ? b", "Parse error: expected ':', found the end."),
      ("+a == 1", "Parse error: expected an operand, found '+'."),
      ("a; b", "Parse error: unexpected character."),
      ("'open", "Parse error: the string does not end."),
      (#"'a\nb' == ''"#, "Parse error: a line break in a string."),
      ("('a' + 1) - 1 == 1", "Invalid - expression: left operand is string, not a number."),
      ("1.e == 1", "Parse error: a malformed number."), ("010 == 8", "Parse error: a malformed number."),
      (#"'\\ud83d' == ''"#, "Parse error: half a surrogate pair."),
      (#"'\\1' == ''"#, "Parse error: an octal escape."),
      (#"'\\u12' == ''"#, "Parse error: an escape without its 4 hexadecimal digits."),
      ("'a'.matches(/a(b/)", "Invalid regular expression: a '(' without its ')'."),
      ("'a'.matches(/a/ig)", "Invalid regular expression: the only flag is 'i'."),
      ("'a'.matches(/a", "Invalid regular expression: it does not end."),
      ("'a'.matches(//)", "Invalid regular expression: it is empty."),
      ("'a'.matches(/(a{1000}){20}/)", "Invalid regular expression: it is too large."),
      ("tr", "Unknown variable 'tr'."), ("$x == 'a'", "Unknown variable '$x'."),
      ("newData.exists()", "Unknown variable 'newData'."),
      ("data.isArray()", "No such method/property 'isArray'."),
      ("auth.x.foo()", "No such method/property 'foo'."),
      ("auth", "A rule must be of type boolean, not any."),
      ("true && auth", "Right operand of && must be boolean."),
      ("!now", "The operand of ! must be boolean."),
      ("data.child(7).exists()", "child() takes strings, not number."),
      ("data.child().exists()", "child() takes 1 arguments, not 0."),
      ("data.hasChildren([])", "hasChildren() takes one list of at least one string, or nothing."),
      ("[true]", "A list may stand as the argument of hasChildren() only."),
      ("/a/ == /a/", "A regular expression may stand as the argument of matches() only."),
      ("data == null", "Invalid == expression: left operand is snapshot, not a value."),
      ("1 < 'a'", "Invalid < expression: left and right operands have different types."),
      ("1 - 'a' == 1", "Invalid - expression: right operand is string, not a number."),
      ("(true ? data : 1) == 1", "The results of ? have different types: snapshot and number."),
      ("auth() == 1", "Only methods can be called."), ("data['a' + 'b']", "Invalid property access."),
    ])
  func mistakes(expression: String, message: String) {
    let text = "{\n  \"rules\": {\n    \".read\": \"\(expression)\"\n  }\n}"
    #expect(problems(text) == "3:15: \(message)\n", "\(expression)")
  }

  @Test("Rules of writes cannot use query, and rules of reads cannot use newData")
  func variablesByKind() {
    for kind in [".write", ".validate"] {
      #expect(
        problems("{\"rules\":{\"\(kind)\":\"query.orderByKey\"}}").hasSuffix("Unknown variable 'query'.\n"))
      #expect(problems("{\"rules\":{\"\(kind)\":\"newData.exists()\"}}") == "")
    }
    #expect(problems(#"{"rules":{".read":"newData.exists()"}}"#).hasSuffix("Unknown variable 'newData'.\n"))
  }

  @Test(
    "The complete language compiles",
    arguments: [
      "true", "!(auth != null && auth.a == 1 || -data.val() > .5e3 * 2. % 3)",
      "1 == 1 ? true : 2 == 2 ? false : true",
      "auth.token['x' + $uid].toLowerCase() === null", "data.hasChildren(['a', $uid, data.val()])",
      #"data.val().matches(/^[a-z\\/^$]+\\.[^/]{2,}(x|y)$/i)"#, "1 / 2 / 3 == 1 && !!true",
      #"root.child(\"a\")['val']() !== 'it\\'s'"#, "query.orderByKey && query.limitToFirst < 5",
      "(1 == 1 ? data : root).child('a').exists()", #"'\\u{1F600}\\x41\\\nb' != ''"#,
    ])
  func completeLanguage(expression: String) {
    #expect(problems("{\"rules\":{\"$uid\":{\".read\":\"\(expression)\"}}}") == "", "\(expression)")
  }

  @Test(
    "All mistakes of a file are reported; in an expression of several lines, with the line of the mistake")
  func severalMistakes() {
    let text = """
      {"rules": {
        ".read": "tr",
        "a": {".validate": "newData.exists() &&
            newData.isText()"},
        "b": 1
      }}
      """
    #expect(
      problems(text)
        == "2:13: Unknown variable 'tr'.\n3:23: No such method/property 'isText'. (line 4)\n"
        + "5:8: Expected an object of rules.\n")
  }

  @Test("The depth of expressions is limited, chains of operators are not")
  func depth() {
    func read(_ expression: String) -> String { problems("{\"rules\":{\".read\":\"\(expression)\"}}") }
    func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }
    for deep in [
      repeated("(", 500) + "true" + repeated(")", 500), repeated("!", 100_000) + "true",
      "auth" + repeated("[auth", 500) + repeated("]", 500) + " == 1",
      "auth" + repeated(".a", 5_000) + " == 1",
      repeated("true ? true : ", 500) + "true",
    ] {
      #expect(read(deep).contains("at most 128 levels deep"), "\(deep.prefix(40))")
    }
    #expect(read(repeated("true && ", 50_000) + "true") == "")
    #expect(read("0" + repeated(" + 1", 50_000) + " == 50000") == "")
    #expect(read(repeated("(", 100) + "true" + repeated(")", 100)) == "")
  }
}
