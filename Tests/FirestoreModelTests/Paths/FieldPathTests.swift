// Tests field paths and their text form.

import FirestoreModel
import RandomModels
import Testing

@Suite("Field paths", .timeLimit(.minutes(10)))
struct FieldPathTests {
  @Test(
    "Field paths convert between their text and their names in both directions",
    arguments: [
      ("a", ["a"]), ("a.b", ["a", "b"]), ("`a.b`.c", ["a.b", "c"]), ("_x1", ["_x1"]), ("`1a`", ["1a"]),
      (#"`a\`b`"#, ["a`b"]), (#"`a\\b`"#, [#"a\b"#]), ("`é😀`", ["é😀"]), ("` `", [" "]),
      ("__name__", ["__name__"]),
    ])
  func parsing(text: String, names: [String]) throws {
    let path = try FieldPath(parsing: text)
    #expect(path.segments == names)
    #expect(path.description == text)
  }

  @Test("The canonical text has no unnecessary quotes and escapes")
  func canonical() throws {
    #expect(try FieldPath(parsing: "`a`.`b`").description == "a.b")
    #expect(try FieldPath(parsing: #"`\a`"#).description == "a")
  }

  @Test(
    "Malformed text is rejected",
    arguments: [
      "", ".", "a.", ".a", "a..b", "1a", "a b", "a-b", "`a", "``", "`a`b", #"`a\"#, "é", "a.`", "a[0]", "*",
    ])
  func malformedText(text: String) {
    let error = failure { () throws(FirestoreError) in _ = try FieldPath(parsing: text) }
    #expect(error?.code == .invalidArgument)
    #expect(
      error?.message.hasPrefix("Invalid property path \"\(text)\". Unquoted property paths must match")
        == true)
  }

  @Test(
    "Paths longer than 1,500 bytes, without quotes and backslashes, are rejected",
    arguments: [
      ["x"], ["é"], ["`"], ["\\"], ["a", "b"], ["`", "\\"], ["a", "é", "`"], ["\u{0}"], ["."],
    ])
  func maximumLength(parts: [String]) throws {
    // The paths have one long name, or the maximum number of short names.
    let group = parts.joined()
    let repeated = String(repeating: group, count: 1500 / group.utf8.count)
    let long = repeated + String(repeating: "x", count: 1500 - repeated.utf8.count)
    let many = Array(repeating: parts, count: 2000).joined().map { String($0) }
    var fitting: [String] = []
    var bytes = -1
    for name in many where bytes + 1 + name.utf8.count <= 1500 {
      bytes += 1 + name.utf8.count
      fitting.append(name)
    }
    for segments in [[long], fitting] {
      let path = try #require(FieldPath(segments: segments))
      #expect(try FieldPath(parsing: path.description) == path)
    }
    for segments in [[long + "x"], fitting + ["xx"]] {
      let path = try #require(FieldPath(segments: segments))
      let error = failure { () throws(FirestoreError) in _ = try FieldPath(parsing: path.description) }
      #expect(error == .invalidArgument("Property path is longer than 1500 bytes."))
    }
  }

  @Test("Random names are unchanged after formatting and parsing")
  func roundTrip() throws {
    var source = RandomValues(seed: 21)
    let parts = ["a", "`", "\\", ".", "é", "\u{0}", " ", "9", "_", "😀"]
    for _ in 0..<5000 {
      let names = (0..<1 + source.below(3)).map { _ in
        (0..<1 + source.below(4)).map { _ in source.pick(parts) }.joined()
      }
      let path = try #require(FieldPath(segments: names))
      #expect(try FieldPath(parsing: path.description) == path)
    }
  }

  @Test("Paths sort name by name, shorter paths first")
  func order() throws {
    let ordered = try ["a", "a.b", "a.b.c", "a.c", "`a.b`", "ab", "b"].map { try FieldPath(parsing: $0) }
    for (i, a) in ordered.enumerated() {
      for (j, b) in ordered.enumerated() { #expect(FieldPath.compare(a, b) == ComparisonOrder.compare(i, j)) }
    }
    #expect(FieldPath(segments: []) == nil && FieldPath(segments: ["a", ""]) == nil)
    #expect(FieldPath.documentID.isDocumentID)
  }
}
