// Tests `NodeStreamReader` and `NodeStreamWriter`, which convert between JSON chunks and rows (leaves with
// their paths). The result must not depend on where the chunks end.

import RandomModels
import RealtimeModel
import Testing

@Suite("Streams of JSON")
struct NodeStreamTests {
  /// Reads a text in chunks of random sizes into rows, like an import. Checks that the rows are exactly the
  /// leaves of a node, and returns the node.
  private func read(
    _ bytes: [UInt8], _ random: inout RandomNodes, maximumChunk: Int, depthAbove: Int = 0
  ) throws(RealtimeError) -> Node {
    var reader = NodeStreamReader(at: Path(keys: Array(repeating: "k", count: depthAbove)))
    var rows: [Path: Node] = [:]
    func apply(_ event: NodeStreamReader.Event) {
      switch event {
      case .row(let keys, let leaf): rows[Path(keys: keys)] = leaf
      case .repeated(let keys): rows = rows.filter { !$0.key.keys.starts(with: keys) }
      case .priority(let keys, let leaf):
        if rows.keys.contains(where: { $0.keys.starts(with: keys) }) {
          rows[Path(keys: keys + [.priority])] = leaf
        }
      }
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      let chunk = Array(rest.prefix(1 + random.below(maximumChunk)))
      rest = rest.dropFirst(chunk.count)
      try chunk.withUnsafeBytes { raw in
        Result { () throws(RealtimeError) in try reader.read(raw, apply) }
      }.get()
    }
    try reader.finish(apply)
    var node = Node.empty
    // Applies priorities last, because an empty location cannot have one.
    for isPriority in [false, true] {
      for (path, leaf) in rows where path.isPriority == isPriority { node = node.setting(path, to: leaf) }
    }
    var expected: [Path: Node] = [:]
    node.forEachLeaf { expected[$0] = $1 }
    #expect(rows == expected, "\(String(decoding: bytes, as: UTF8.self))")
    return node
  }

  /// Returns the JSON of a random object in which names, priorities and nulls repeat.
  private func repetitiveObject(_ random: inout RandomNodes, depth: Int) -> String {
    let members = (0..<random.below(6)).map { _ -> String in
      let name = ["a", "b", "c", "2", "10"][random.below(5)]
      let value =
        switch random.below(depth == 0 ? 4 : 7) {
        case 0, 1: "null"
        case 2: "\(random.below(9))"
        case 3: #"{".value":\#(random.below(9)),".priority":1}"#
        default: repetitiveObject(&random, depth: depth - 1)
        }
      return random.below(4) == 0 ? #"".priority":\#(random.below(3))"# : "\"\(name)\":\(value)"
    }
    return "{\(members.joined(separator: ","))}"
  }

  @Test("Repeated names never leave a stored priority at a location without a value", arguments: 0..<2_000)
  func repetition(seed: Int) throws {
    var random = RandomNodes(seed: UInt64(seed))
    let text = repetitiveObject(&random, depth: 3)
    #expect(
      try read(Array(text.utf8), &random, maximumChunk: 30) == (try Node(json: Array(text.utf8))), "\(text)")
  }

  @Test("Random nodes read in chunks equal the original nodes, compact and pretty", arguments: 0..<300)
  func randomNodes(seed: Int) throws {
    var random = RandomNodes(seed: UInt64(seed))
    let node = random.node(depth: 4)
    for format in [NodeFormat.export, .plain] {
      let text = node.json(format, pretty: seed % 2 == 0)
      #expect(try read(text, &random, maximumChunk: 1 + seed % 40) == (try Node(json: text)))
    }
  }

  @Test("The JSON written from a node's rows reads back as the same node", arguments: 0..<300)
  func writtenRows(seed: Int) throws {
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

  @Test("Chunked parsing rejects the same input as whole-document parsing", arguments: 0..<2_000)
  func corruptedText(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed))
    var text = random.node(depth: 3).json(.export, pretty: seed % 2 == 0)
    for _ in 0..<(1 + random.below(3)) where !text.isEmpty {
      let position = random.below(text.count)
      switch random.below(4) {
      case 0: text.remove(at: position)
      case 1: text.insert(Array("{}[]\",:.0-e\\n\u{1}é$#".utf8)[random.below(18)], at: position)
      case 2: text[position] = UInt8(random.below(256))
      default: text.append(contentsOf: text[..<position].suffix(5))
      }
    }
    let parsed = try? Node(json: text)
    let streamed = try? read(text, &random, maximumChunk: 1 + seed % 9)
    #expect(streamed == parsed, "\(String(decoding: text, as: UTF8.self))")
  }

  @Test(
    "The last of several members with the same name replaces the others",
    arguments: [
      (#"{"a":{"x":1},"b":2,"a":{"y":3}}"#, #"{"a":{"y":3},"b":2}"#),
      (#"{"b":1,"a":{"c":1},"a":null}"#, #"{"b":1}"#), (#"{"a":1,"a":2}"#, #"{"a":2}"#),
      (#"{"2":1,"10":2,"9":3,"2":null}"#, #"{"10":2,"9":3}"#),
      (#"{"p":{"a":1,"a":null,".priority":5}}"#, "null"),
      (#"{"p":{"a":1,"b":2,"a":null,".priority":5}}"#, #"{"p":{"b":2,".priority":5}}"#),
      (
        #"{"p":{"q":{"a":1,"b":1,"a":null,"b":null,".priority":1},".priority":2},"r":1,".priority":3}"#,
        #"{"r":1,".priority":3}"#
      ),
    ])
  func repeated(text: String, meaning: String) throws {
    var random = RandomNodes(seed: 1)
    #expect(try read(Array(text.utf8), &random, maximumChunk: 3) == (try Node(json: Array(meaning.utf8))))
  }

  @Test(
    "Errors have Firebase's message, with the position of an invalid key",
    arguments: [
      ("{\"ok\":1,\n  \"b.d\":2}", "parse key beginning at 2:3."),
      ("{\"a\":{\".odd\":1}}", "beginning at 1:7."),
      (
        "{\"\(String(repeating: "k", count: 769))\":1}",
        "1:2. A key may have at most 768 bytes, and this has 769."
      ),
      (
        "{\"\(String(repeating: "k", count: 9_000))\":1}",
        "A key may have at most 768 bytes, and this has more."
      ),
      ("{\"\(String(repeating: "\\u0061", count: 767))bb\":1}", "at most 768 bytes, and this has 769."),
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
      _ = try read(Array(text.utf8), &random, maximumChunk: 4)
      Issue.record("\(text) was accepted")
    } catch { #expect(error.message.contains(expected), "\(error)") }
  }

  @Test("The depth limit counts from the root of the database, not from the imported location")
  func depth() {
    var random = RandomNodes(seed: 1)
    let text = Array((String(repeating: "{\"a\":", count: 4) + "1" + String(repeating: "}", count: 4)).utf8)
    #expect((try? read(text, &random, maximumChunk: 9, depthAbove: 28)) != nil)
    #expect((try? read(text, &random, maximumChunk: 9, depthAbove: 29)) == nil)
    // Empty arrays and objects are not data, so they may be nested deeper.
    let empty = Array((String(repeating: "[", count: 40) + String(repeating: "]", count: 40)).utf8)
    #expect((try? read(empty, &random, maximumChunk: 9)) == Node.empty)
    let leaf =
      Array((String(repeating: "{\"a\":", count: 33) + "{\".value\":1}").utf8)
      + Array(repeating: UInt8(ascii: "}"), count: 33)
    #expect((try? read(leaf, &random, maximumChunk: 9)) == nil)
    let levels = Array(String(repeating: "[", count: 100_000).utf8)
    #expect((try? read(levels, &random, maximumChunk: 1 << 16)) == nil)
  }

  @Test(
    "An incomplete string is rejected once its unescaped length exceeds the limit",
    arguments: [
      ("x", 1), ("\\n", 1), ("\\u0061", 1), ("\\u00e9", 2), ("\\u20ac", 3), ("\\ud83d\\ude00", 4), ("é", 2),
    ])
  func incompleteString(character: String, bytes: Int) throws {
    var limits = RealtimeLimits()
    limits.stringBytes = 1_200
    for start in ["\"", "{\"a\":{\".value\":\""] {
      var reader = NodeStreamReader(limits: limits)
      func feed(_ text: some Sequence<UInt8>) throws(RealtimeError) {
        for byte in text {
          try [byte].withUnsafeBytes { raw in
            Result { () throws(RealtimeError) in try reader.read(raw) { _ in } }
          }.get()
        }
      }
      try feed(start.utf8)
      for _ in 0..<(limits.stringBytes / bytes) { try feed(character.utf8) }
      #expect(reader.pendingBytes == 1 + limits.stringBytes / bytes * character.utf8.count)
      var ending = reader
      let end = start == "\"" ? "\"" : "\"}}"
      try end.utf8.withContiguousStorageIfAvailable { text in
        try ending.read(UnsafeRawBufferPointer(text)) { _ in }
      }
      try ending.finish { _ in }
      do throws(RealtimeError) {
        try feed(character.utf8)
        Issue.record("one more character was accepted")
      } catch { #expect(error.message.contains("string longer than 1200 bytes")) }
    }
  }

  @Test("An incomplete key is rejected once it exceeds the longest possible key")
  func incompleteKey() {
    var reader = NodeStreamReader()
    let text = Array("{\"".utf8) + Array(repeating: UInt8(ascii: "k"), count: 6 * 768 + 2)
    do throws(RealtimeError) {
      try text.withUnsafeBytes { raw in
        Result { () throws(RealtimeError) in try reader.read(raw) { _ in } }
      }.get()
      Issue.record("a key of \(text.count - 2) bytes was buffered")
    } catch { #expect(error.message.contains("A key may have at most 768 bytes, and this has more.")) }
  }

  @Test("The buffer releases its memory after a long string")
  func bufferMemory() throws {
    var reader = NodeStreamReader()
    let text = Array("[1,\"\(String(repeating: "x", count: 3 << 20))".utf8)
    try text.withUnsafeBytes { try reader.read($0) { _ in } }
    #expect(reader.pendingBytes == text.count - 3)
    try Array("\",\"ab".utf8).withUnsafeBytes { try reader.read($0) { _ in } }
    #expect(reader.pendingBytes == 3)
  }
}
