// Tests keys and paths: their order, their equality and their validation.

import RandomModels
import RealtimeModel
import Testing

@Suite("Keys and paths", .timeLimit(.minutes(10)))
struct KeyOrderTests {
  @Test("Keys sort as: minimum sentinel, integers by number, other keys by UTF-16, maximum sentinel")
  func order() {
    let ascending: [ChildKey] = [
      .minimum, "-2147483648", "-5", "0", "00", "1", "01", "001", "2", "10", "2147483647", "-", "-2147483649",
      "2147483648",
      "9999999999", "A", "a", "b", "é", "\u{1F600}", "\u{FF5E}", .maximum,
    ]
    for (i, a) in ascending.enumerated() {
      for (j, b) in ascending.enumerated() {
        #expect((a < b) == (i < j), "\(a) and \(b)")
        #expect((a == b) == (i == j), "\(a) and \(b)")
      }
    }
  }

  @Test("The fast comparison of texts equals a comparison of their UTF-16 code units")
  func utf16() {
    var random = SeededGenerator(seed: 7)
    let units: [UInt32] = [
      0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0x10000, 0x1F600, 0x10FFFF,
    ]
    func text() -> String {
      var result = String.UnicodeScalarView()
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let unit = units[Int.random(in: units.indices, using: &random)]
        if let scalar = Unicode.Scalar(unit) { result.append(scalar) }
      }
      return String(result)
    }
    for _ in 0..<20_000 {
      let (a, b) = (text(), text())
      #expect((TextOrder.compare(a, b) < 0) == a.utf16.lexicographicallyPrecedes(b.utf16))
      #expect(TextOrder.equal(a, b) == Array(a.utf8).elementsEqual(Array(b.utf8)))
    }
  }

  @Test("Canonically equivalent strings are different keys")
  func normalization() {
    let composed = ChildKey("\u{E9}")
    let decomposed = ChildKey("e\u{301}")
    #expect(composed != decomposed)
    let node = Node.empty.settingChild(composed, to: .leaf(.int(1))).settingChild(
      decomposed, to: .leaf(.int(2)))
    #expect(node.childCount == 2)
    #expect(Set([composed, decomposed]).count == 2)
    #expect(Node.leaf(.string("\u{E9}")) != Node.leaf(.string("e\u{301}")))
  }

  @Test(
    "Empty keys, keys with forbidden characters and keys longer than 768 bytes are rejected",
    arguments: [
      "", ".", "a.b", "$x", "#", "[", "]", "a/b", "\u{0}", "\u{1F}", "\u{7F}",
      String(repeating: "é", count: 385),
    ])
  func rejected(text: String) {
    #expect(throws: RealtimeError.self) { try ChildKey(validating: text) }
  }

  @Test("Keys of 768 bytes and all other characters are accepted")
  func accepted() throws {
    _ = try ChildKey(validating: String(repeating: "é", count: 384))
    _ = try ChildKey(validating: "a b-_~!@%^&*()+='\";:<>,?\u{80}\u{1F600}")
  }

  @Test("Repeated, leading and trailing slashes are ignored")
  func slashes() throws {
    #expect(Path("//a///b/") == Path(keys: ["a", "b"]))
    #expect(Path("/") == .root)
    #expect(Path("a/b").absolute == "/a/b")
    #expect(try Path(validating: "/x/.priority", allowingPriority: true).isPriority)
    #expect(throws: RealtimeError.self) { try Path(validating: "/x/.priority") }
    #expect(throws: RealtimeError.self) { try Path(validating: "/.priority/x", allowingPriority: true) }
    #expect(throws: RealtimeError.self) { try Path(validating: "/a.b") }
  }

  @Test("A path of 32 levels is accepted, a path of 33 levels is rejected")
  func depth() throws {
    let deep = Array(repeating: "k", count: 32).joined(separator: "/")
    _ = try Path(validating: deep)
    _ = try Path(validating: deep + "/.priority", allowingPriority: true)
    #expect(throws: RealtimeError.self) { try Path(validating: deep + "/k") }
  }

  @Test("A path contains itself and its descendants")
  func containment() {
    #expect(Path("a/b").contains("a/b/c"))
    #expect(Path("a/b").contains("a/b"))
    #expect(!Path("a/b").contains("a"))
    #expect(!Path("a/b").contains("a/bc"))
    #expect(Path("a/b/c").relative(to: "a") == "b/c")
    #expect(Path("a/b/c").relative(to: "b") == nil)
  }
}
