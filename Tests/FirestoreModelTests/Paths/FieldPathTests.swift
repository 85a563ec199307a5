// Field paths and their text.

import FirestoreModel
import RandomModels
import Testing

@Suite("Field paths", .timeLimit(.minutes(10)))
struct FieldPathTests {
  @Test(
    "text and names convert both ways",
    arguments: [
      ("a", ["a"]), ("a.b", ["a", "b"]), ("`a.b`.c", ["a.b", "c"]), ("_x1", ["_x1"]), ("`1a`", ["1a"]),
      (#"`a\`b`"#, ["a`b"]), (#"`a\\b`"#, [#"a\b"#]), ("`é😀`", ["é😀"]), ("` `", [" "]),
      ("__name__", ["__name__"]),
    ])
  func parses(text: String, names: [String]) throws {
    let path = try FieldPath(parsing: text)
    #expect(path.segments == names)
    #expect(path.description == text)
  }

  @Test("needless quotes and escapes are dropped in the canonical text")
  func canonical() throws {
    #expect(try FieldPath(parsing: "`a`.`b`").description == "a.b")
    #expect(try FieldPath(parsing: #"`\a`"#).description == "a")
  }

  @Test(
    "text outside of the grammar is refused",
    arguments: [
      "", ".", "a.", ".a", "a..b", "1a", "a b", "a-b", "`a", "``", "`a`b", #"`a\"#, "é", "a.`", "a[0]", "*",
    ])
  func refuses(text: String) {
    let error = failure { () throws(FirestoreError) in _ = try FieldPath(parsing: text) }
    #expect(error?.code == .invalidArgument)
    #expect(
      error?.message.hasPrefix("Invalid property path \"\(text)\". Unquoted property paths must match")
        == true)
  }

  @Test("paths longer than 1,500 bytes are refused")
  func length() {
    #expect(throws: Never.self) { try FieldPath(parsing: String(repeating: "x", count: 1500)) }
    #expect(throws: FirestoreError.self) { try FieldPath(parsing: String(repeating: "x", count: 1501)) }
  }

  @Test("random names survive the text form")
  func roundTrip() throws {
    var source = RandomValues(seed: 21)
    let pieces = ["a", "`", "\\", ".", "é", "\u{0}", " ", "9", "_", "😀"]
    for _ in 0..<5000 {
      let names = (0..<1 + source.below(3)).map { _ in
        (0..<1 + source.below(4)).map { _ in source.pick(pieces) }.joined()
      }
      let path = try #require(FieldPath(segments: names))
      #expect(try FieldPath(parsing: path.description) == path)
    }
  }

  @Test("paths order name by name, shorter first")
  func order() throws {
    let ordered = try ["a", "a.b", "a.b.c", "a.c", "`a.b`", "ab", "b"].map { try FieldPath(parsing: $0) }
    for (i, a) in ordered.enumerated() {
      for (j, b) in ordered.enumerated() { #expect(FieldPath.compare(a, b) == Ordering.compare(i, j)) }
    }
    #expect(FieldPath(segments: []) == nil && FieldPath(segments: ["a", ""]) == nil)
    #expect(FieldPath.documentID.isDocumentID)
  }
}
