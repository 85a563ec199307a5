// Tests reading rules files: extensions of JSON, indexes, problems with their positions, and limits.

import JSON
import RandomModels
import RealtimeModel
import Testing

@Suite("Rules files of the Realtime Database", .timeLimit(.minutes(10)))
struct RulesFileTests {
  private func read(_ text: String) throws(RulesError) -> RulesFile { try RulesFile(Array(text.utf8)) }

  /// Returns the problems of a text, or an empty text if it is accepted.
  private func problems(_ text: String) -> String {
    do throws(RulesError) {
      _ = try read(text)
      return ""
    } catch { return error.description }
  }

  @Test("Comments, raw line breaks and trailing commas are accepted, and the text is stored unchanged")
  func verbatim() throws {
    let text = """
      // who may
      { /* all */ "rules": {
          ".read": "auth != null &&
            auth.uid == 'x // no comment'", // here
          ".write": false,
          "list": { ".indexOn": ["due", "a/b", ".value", ".key", "due",], "$id": {} },
        },
      } /* end */
      """
    let rules = try read(text)
    #expect(rules.text == text)
    let strict = try JSONValue(json: rules.strictText)
    #expect(
      strict["rules"]?[".read"]?.string == "auth != null &&\n      auth.uid == 'x // no comment'")
    #expect(
      rules.strictText.hasSuffix(
        #"".write":false,"list":{".indexOn":["due","a/b",".value",".key","due"],"$id":{}}}}"#))
    #expect(rules.root.write == .constant(false))
    #expect(rules.root.child("list")?.indexes == [.child("due"), .child("a/b"), .value])
    #expect(rules.root.child("list")?.wildcard?.name == "$id")
    // The plain form has the same meaning.
    let again = try read(rules.strictText)
    #expect(again.strictText == rules.strictText && again.root.read == rules.root.read)
  }

  @Test(
    "An index applies at its location and below wildcards, but not at keys that have their own rules")
  func indexes() throws {
    let rules = try read(
      #"""
      {"rules": {
        "notes": {".indexOn": "due"},
        "tasks": {"$day": {".indexOn": ["rank", "meta/size"], "$task": {"tags": {".indexOn": ".value"}}},
                  "today": {"x": {".indexOn": "rank"}}}
      }}
      """#)
    for (ordering, path, isIndexed) in [
      (Ordering.child("due"), "notes", true), (.child("due"), "notes/n1", false),
      (.child("other"), "notes", false),
      (.value, "notes", false), (.key, "anywhere", true), (.priority, "notes/n1", true),
      (.child("rank"), "tasks/monday", true), (.child("meta/size"), "tasks/monday", true),
      (.child("meta"), "tasks/monday", false), (.value, "tasks/monday/t1/tags", true),
      (.child("rank"), "tasks", false), (.child("rank"), "tasks/today", false),
      (.child("rank"), "tasks/today/x", true), (.child("rank"), "tasks/today/y", false),
    ] as [(Ordering, Path, Bool)] {
      #expect(rules.hasIndex(on: ordering, at: path) == isIndexed, "\(ordering) at \(path)")
    }
  }

  @Test(
    "All problems are reported at once, with their positions",
    arguments: [
      ("{}", "1:2: Expected 'rules' property.\n"),
      ("", "1:1: Parse error: expected an object with the property 'rules'.\n"),
      ("[]", "1:1: Parse error: expected an object with the property 'rules'.\n"),
      (#"{"rules":{}} x"#, "1:14: Parse error: expected the end of the text.\n"),
      (
        #"{"rules":{},"more":{"a":[1,{}]}}"#,
        "1:13: Unexpected property 'more': only 'rules' may stand here.\n"
      ),
      (
        "{\n  \"rules\": {\n    \".read\": 1\n",
        "3:14: .read must be a string with an expression, or true or false.\n4:1: Parse error: expected ',' or '}'.\n"
      ),
      (
        #"{"rules":{"a":1,"b":null}}"#,
        "1:15: Expected an object of rules.\n1:21: Expected an object of rules.\n"
      ),
      (
        #"{"rules":{".read":1,".other":true}}"#,
        "1:19: .read must be a string with an expression, or true or false.\n"
          + "1:21: Key names can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\" (unbound names start with \"$\")\n"
          + "1:30: Expected an object of rules.\n"
      ),
      (
        #"{"rules":{".indexOn":true,"a":{".indexOn":["x",1,"b..c","",]}}}"#,
        "1:22: .indexOn must be a string or an array of strings.\n1:48: .indexOn must be a string or an array of "
          + "strings.\n1:50: .indexOn must name child paths or .value, not 'b..c'.\n"
          + "1:57: .indexOn must name child paths or .value, not ''.\n"
      ),
      (
        #"{"rules":{"$a":{"$a":{}},"$b":{},"$":{},"a":{},"a":{}}}"#,
        "1:17: The wildcard '$a' stands above already: give this one another name.\n"
          + "1:26: There may be one wildcard at a place: '$a' stands here already.\n"
          + "1:34: A wildcard is a $ and a name of letters, digits and _, not '$'.\n"
          + "1:48: The property 'a' stands here twice.\n"
      ),
      ("{\"rules\":{/* open", "1:11: Parse error: the comment does not end.\n"),
      (
        "{\"rules\":{\"ż😀\":{\".read\":1}}}",
        "1:26: .read must be a string with an expression, or true or false.\n"
      ),
    ])
  func structure(text: String, expected: String) { #expect(problems(text) == expected) }

  @Test("Every rule is reported to the checker, and its mistake has the position of the rule")
  func checker() throws {
    let text = """
      {"rules": {
        ".read": true,
        "a": { "$b": { ".validate": "ż &&
          bad", ".write": "bad" } },
        "c": { ".read": "good" }
      }}
      """
    var sites: [RuleSite] = []
    let error = #expect(throws: RulesError.self) {
      try RulesFile(Array(text.utf8)) { site in
        sites.append(site)
        guard case .expression(let text) = site.rule else { return nil }
        return text.hasSuffix("bad") ? RuleMistake(offset: text.utf8.count - 3, message: "Bad.") : nil
      }
    }
    #expect(error?.description == "3:32: Bad. (line 4)\n4:22: Bad.\n")
    #expect(
      sites == [
        RuleSite(path: [], kind: .read, rule: .constant(true), line: 2, column: 12),
        RuleSite(
          path: ["a", "$b"], kind: .validate, rule: .expression("ż &&\n    bad"), line: 3, column: 32),
        RuleSite(path: ["a", "$b"], kind: .write, rule: .expression("bad"), line: 4, column: 22),
        RuleSite(path: ["c"], kind: .read, rule: .expression("good"), line: 5, column: 20),
      ])
  }

  /// Returns random rules with few names and few indexes, so that files often agree.
  private func randomRules(_ random: inout SeededGenerator, depth: Int) -> String {
    var members: [String] = []
    if random.below(3) == 0 { members.append("\".indexOn\":[\"x\",\"y\"]") }
    if random.below(4) == 0 { members.append("\".read\":true") }
    for name in ["a", "b", "$v\(depth)"] where depth > 0 && random.below(2) == 0 {
      members.append("\"\(name)\":\(randomRules(&random, depth: depth - 1))")
    }
    return "{\(members.joined(separator: ","))}"
  }

  @Test("`hasSameIndexes` is true if and only if two files have the same indexes at every location")
  func sameIndexes() throws {
    var random = SeededGenerator(seed: 3)
    let names: [ChildKey] = ["a", "b", "other"]
    var paths: [Path] = [.root]
    for depth in 0..<3 {
      paths += paths.filter { $0.count == depth }.flatMap { path in names.map { path.child($0) } }
    }
    var same = 0
    for round in 0..<3_000 {
      let texts = (0..<2).map { _ in "{\"rules\":\(randomRules(&random, depth: 1 + round % 3))}" }
      let (a, b) = (try read(texts[0]), try read(texts[1]))
      let expected = paths.allSatisfy {
        a.hasIndex(on: .child("x"), at: $0) == b.hasIndex(on: .child("x"), at: $0)
      }
      #expect(a.root.hasSameIndexes(as: b.root) == expected, "\(texts)")
      #expect(a.root.hasSameIndexes(as: nil) == !a.root.hasIndexes)
      if expected, a.root.hasIndexes { same += 1 }
    }
    #expect(same > 20, "\(same)")
  }

  @Test(
    "Comparing the indexes of the largest files takes no longer than reading them", .timeLimit(.minutes(1)))
  func sameIndexesOfLargeFiles() throws {
    // Each file has many named children whose rules equal the other file's wildcard.
    let index = #"{".indexOn":"v"}"#
    let names = (0..<22_000).map { "\"n\($0)\":{\"$k\":\(index)}" }.joined(separator: ",")
    let others = (0..<35_000).map { "\"o\($0)\":\(index)" }.joined(separator: ",")
    let a = try read("{\"rules\":{\(names),\"$w\":{\"$k\":\(index)}}}")
    let b = try read("{\"rules\":{\"$w\":{\(others),\"$k\":\(index)}}}")
    #expect(a.root.hasSameIndexes(as: b.root) && b.root.hasSameIndexes(as: a.root))
    let c = try read("{\"rules\":{\"$w\":{\(others),\"last\":{},\"$k\":\(index)}}}")
    #expect(!a.root.hasSameIndexes(as: c.root))
  }

  @Test("Depth, size and the number of problems are limited")
  func bounds() {
    let deep = String(repeating: #"{"a":"#, count: 200)
    #expect(problems(#"{"rules":"# + deep).hasSuffix("Rules may have at most 128 levels.\n"))
    #expect(
      problems(String(repeating: " ", count: RulesFile.maximumBytes + 1)).contains("at most 1048576 bytes"))
    let many = #"{"rules":{"# + (0..<1000).map { "\"k\($0)\":1" }.joined(separator: ",") + "}}"
    #expect(problems(many).split(separator: "\n").count == 100)
  }

  @Test("Corrupted files are rejected or read, and never crash")
  func corruption() {
    let good = Array(
      #"{"rules":{".read":"auth.uid == 'é\u00e9' && /a[b-]$/i.x","l":{".indexOn":["a/b",".value"],"$x":{/**/}},}}// ż"#
        .utf8)
    var random = SeededGenerator(seed: 7)
    var rejectedCount = 0
    for _ in 0..<5_000 {
      var bytes = good
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let position = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[position] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.remove(at: position)
        default: bytes.removeSubrange(position...)
        }
        if bytes.isEmpty { break }
      }
      do throws(RulesError) {
        let rules = try RulesFile(bytes)
        #expect(rules.text.utf8.elementsEqual(bytes))
        #expect((try? RulesFile(Array(rules.strictText.utf8)).strictText) == rules.strictText)
      } catch {
        rejectedCount += 1
        #expect(!error.problems.isEmpty && error.problems.allSatisfy { $0.line > 0 && $0.column > 0 })
      }
    }
    #expect(rejectedCount > 500)
  }
}
