// JSON in pieces: whatever the pieces, it says what the whole text says, and back.

import RandomModels
import RealtimeModel
import Testing

@Suite("JSON in pieces")
struct NodeStreamTests {
  /// Reads a text in pieces of random sizes, the way a store would take it: nil if it was refused.
  private func read(
    _ bytes: [UInt8], _ random: inout RandomNodes, most: Int, depthAbove: Int = 0
  ) throws(RealtimeError) -> Node {
    var reader = NodeStreamReader(at: Path(keys: Array(repeating: "k", count: depthAbove)))
    var node = Node.empty
    func take(_ event: NodeStreamReader.Event) {
      switch event {
      case .row(let keys, let leaf): node = node.setting(Path(keys: keys), to: leaf)
      case .again(let keys): node = node.setting(Path(keys: keys), to: .empty)
      }
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(1 + random.below(most)))
      rest = rest.dropFirst(piece.count)
      try piece.withUnsafeBytes { raw in
        Result { () throws(RealtimeError) in try reader.read(raw, take) }
      }.get()
    }
    try reader.finish(take)
    return node
  }

  @Test("Random trees read the same in pieces, in both forms", arguments: 0..<300)
  func trees(seed: Int) throws {
    var random = RandomNodes(seed: UInt64(seed))
    let node = random.node(depth: 4)
    for format in [NodeFormat.export, .plain] {
      let text = node.json(format, pretty: seed % 2 == 0)
      #expect(try read(text, &random, most: 1 + seed % 40) == (try Node(json: text)))
    }
  }

  @Test("Rows write the same tree", arguments: 0..<300)
  func rows(seed: Int) throws {
    var random = RandomNodes(seed: UInt64(seed))
    let node = random.node(depth: 4)
    var writer = NodeStreamWriter(pretty: seed % 2 == 0)
    var text: [UInt8] = []
    node.forEachLeaf { path, leaf in
      writer.row(path.keys, leaf)
      if random.below(3) == 0 { text += writer.take() }
    }
    writer.finish()
    text += writer.take()
    #expect(try Node(json: text) == node)
  }

  @Test("What is no JSON, or cannot be stored, is refused in pieces as it is whole", arguments: 0..<2_000)
  func mutated(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed))
    var text = random.node(depth: 3).json(.export, pretty: seed % 2 == 0)
    for _ in 0..<(1 + random.below(3)) where !text.isEmpty {
      let place = random.below(text.count)
      switch random.below(4) {
      case 0: text.remove(at: place)
      case 1: text.insert(Array("{}[]\",:.0-e\\n\u{1}é$#".utf8)[random.below(18)], at: place)
      case 2: text[place] = UInt8(random.below(256))
      default: text.append(contentsOf: text[..<place].suffix(5))
      }
    }
    let whole = try? Node(json: text)
    let pieces = try? read(text, &random, most: 1 + seed % 9)
    #expect(pieces == whole, "\(String(decoding: text, as: UTF8.self))")
  }

  @Test(
    "Of members with one name the last counts",
    arguments: [
      (#"{"a":{"x":1},"b":2,"a":{"y":3}}"#, #"{"a":{"y":3},"b":2}"#),
      (#"{"b":1,"a":{"c":1},"a":null}"#, #"{"b":1}"#), (#"{"a":1,"a":2}"#, #"{"a":2}"#),
      (#"{"2":1,"10":2,"9":3,"2":null}"#, #"{"10":2,"9":3}"#),
    ])
  func repeated(text: String, meaning: String) throws {
    var random = RandomNodes(seed: 1)
    #expect(try read(Array(text.utf8), &random, most: 3) == (try Node(json: Array(meaning.utf8))))
  }

  @Test(
    "Errors are in the product's words, with the place of a bad key",
    arguments: [
      ("{\"ok\":1,\n  \"b.d\":2}", "parse key beginning at 2:3."),
      ("{\"a\":{\".odd\":1}}", "beginning at 1:7."),
      (
        "{\"\(String(repeating: "k", count: 769))\":1}",
        "1:2. A key may have at most 768 bytes, and this has 769."
      ),
      (
        "{\"\(String(repeating: "k", count: 9_000))\":1}",
        "A key may have at most 768 bytes, and this has 9000."
      ),
      ("{\"a\":1", "couldn't parse JSON object, array, or value."), ("", "couldn't parse JSON"),
      ("{\"a\":tru}", "couldn't parse JSON"), ("[1,]", "couldn't parse JSON"), ("1 2", "couldn't parse JSON"),
      ("{\"a\":{\".value\":1,\"b\":2}}", ".value may not have other children beside it"),
      ("{\"a\":{\".value\":1,\"b\":null}}", ".value may not have other children beside it"),
      ("{\"a\":{\".sv\":\"now\"}}", "unknown server value"),
      ("{\"a\":{\".priority\":true,\"b\":1}}", "priority must be null, a number or a string"),
    ])
  func errors(text: String, expected: String) {
    var random = RandomNodes(seed: 1)
    do throws(RealtimeError) {
      _ = try read(Array(text.utf8), &random, most: 4)
      Issue.record("\(text) was accepted")
    } catch { #expect(error.message.contains(expected), "\(error)") }
  }

  @Test("Depth is counted from the root of the database")
  func depth() {
    var random = RandomNodes(seed: 1)
    let text = Array((String(repeating: "{\"a\":", count: 4) + "1" + String(repeating: "}", count: 4)).utf8)
    #expect((try? read(text, &random, most: 9, depthAbove: 28)) != nil)
    #expect((try? read(text, &random, most: 9, depthAbove: 29)) == nil)
    // What holds nothing is no data, however deep.
    let empty = Array((String(repeating: "[", count: 40) + String(repeating: "]", count: 40)).utf8)
    #expect((try? read(empty, &random, most: 9)) == Node.empty)
    let leaf =
      Array((String(repeating: "{\"a\":", count: 33) + "{\".value\":1}").utf8)
      + Array(repeating: UInt8(ascii: "}"), count: 33)
    #expect((try? read(leaf, &random, most: 9)) == nil)
    let levels = Array(String(repeating: "[", count: 100_000).utf8)
    #expect((try? read(levels, &random, most: 1 << 16)) == nil)
  }

  @Test("A string that never ends is refused at the longest that may be stored")
  func endless() {
    var limits = RealtimeLimits()
    limits.stringBytes = 1_000
    var reader = NodeStreamReader(limits: limits)
    let piece = Array(("\"" + String(repeating: "x", count: 5_000)).utf8)
    #expect(throws: RealtimeError.self) {
      for _ in 0..<4 { try piece.dropFirst().withUnsafeBytes { try reader.read($0) { _ in } } }
      try piece.withUnsafeBytes { try reader.read($0) { _ in } }
    }
  }
}
