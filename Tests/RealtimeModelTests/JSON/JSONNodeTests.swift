// Tests the JSON of nodes: reading, and writing in the export, plain and shallow formats.

import JSON
import RandomModels
import RealtimeModel
import Testing

@Suite("JSON and nodes")
struct JSONNodeTests {
  private func node(_ text: String) throws -> Node { try Node(json: Array(text.utf8)) }

  private func text(_ node: Node, _ format: NodeFormat = .export, pretty: Bool = false) -> String {
    String(decoding: node.json(format, pretty: pretty), as: UTF8.self)
  }

  @Test(
    "The export format reads and writes values, priorities and server values",
    arguments: [
      ("null", "null"), ("{}", "null"), ("[]", "null"), (#"{"a":null,"b":{"c":[]}}"#, "null"),
      ("true", "true"), ("1.0", "1"), ("\"x\"", "\"x\""), (#"{"b":1,"a":2}"#, #"{"a":2,"b":1}"#),
      (#"{"10":1,"9":2,"a":3}"#, #"{"9":2,"10":1,"a":3}"#), (#"["a",null,"c"]"#, #"{"0":"a","2":"c"}"#),
      (#"{".value":5,".priority":"p"}"#, #"{".value":5,".priority":"p"}"#), (#"{".value":5}"#, "5"),
      (#"{".priority":1,".value":null,"k":true}"#, #"{"k":true,".priority":1}"#),
      (#"{".priority":1}"#, "null"), (#"{".value":null,".priority":1}"#, "null"),
      (#"{"a":1,".priority":null}"#, #"{"a":1}"#), (#"{".sv":"timestamp"}"#, #"{".sv":"timestamp"}"#),
      (#"{"n":{".sv":{"increment":2.0}}}"#, #"{"n":{".sv":{"increment":2}}}"#),
      (
        #"{".value":{".sv":"timestamp"},".priority":{".sv":"timestamp"}}"#,
        #"{".value":{".sv":"timestamp"},".priority":{".sv":"timestamp"}}"#
      ),
    ])
  func export(input: String, output: String) throws {
    #expect(text(try node(input)) == output)
  }

  @Test(
    "Data that cannot be stored is rejected with Firebase's message",
    arguments: [
      (
        #"{"a":{"b.c":1}}"#,
        "couldn't parse key beginning at 1:7. Key value can't be empty or contain $ # [ ] / or ."
      ),
      (
        "{\n \"x\":1, \"$y\":1}",
        "couldn't parse key beginning at 2:9. Key value can't be empty or contain $ # [ ] / or ."
      ),
      (#"{"":1}"#, "couldn't parse key beginning at 1:2. Key value can't be empty or contain $ # [ ] / or ."),
      (
        #"{"a/b":1}"#,
        "couldn't parse key beginning at 1:2. Key value can't be empty or contain $ # [ ] / or ."
      ),
      (
        #"{"a\u0000":1}"#,
        "couldn't parse key beginning at 1:2. Key value can't be empty or contain $ # [ ] / or ."
      ),
      (
        #"{".foo":1}"#,
        "couldn't parse key beginning at 1:2. Key value can't be empty or contain $ # [ ] / or ."
      ),
      (#"{".value":1,"a":2}"#, ".value may not have other children beside it"),
      (#"{".sv":"timestamp","a":2}"#, ".sv may not have other children beside it"),
      (#"{".value":{"a":1}}"#, ".value must be null, a boolean, a number or a string"),
      (#"{"a":1,".priority":true}"#, "priority must be null, a number or a string"),
      (#"{"a":1,".priority":{"x":1}}"#, "priority must be null, a number or a string"),
      (#"{".sv":"later"}"#, "unknown server value"), (#"{".sv":{"increment":"1"}}"#, "unknown server value"),
      (#"{".sv":{}}"#, "unknown server value"), (#"{".sv":7}"#, "unknown server value"),
      ("{\"a\":1e999}", "couldn't parse JSON object, array, or value."),
      ("nope", "couldn't parse JSON object, array, or value."),
    ])
  func rejected(input: String, reason: String) throws {
    let bytes = Array(input.utf8)
    let error = try #require(#expect(throws: JSONError.self) { try Node(json: bytes) })
    let reported = bytes.withUnsafeBytes { error.realtimeError(in: $0) }
    #expect(reported == .invalidData(reason))
  }

  @Test("Keys and strings at their limits are accepted, longer ones are rejected")
  func lengths() throws {
    let key = String(repeating: "k", count: 768)
    #expect(try node("{\"\(key)\":1}").childCount == 1)
    #expect(throws: JSONError.self) { try node("{\"\(key)k\":1}") }
    let accented = String(repeating: "é", count: 385)
    #expect(throws: JSONError.self) { try node("{\"\(accented)\":1}") }
    var limits = RealtimeLimits()
    limits.stringBytes = 4
    #expect(try Node(json: Array("\"1234\"".utf8), limits: limits).isLeaf)
    #expect(throws: JSONError.self) { try Node(json: Array("\"éééé\"".utf8), limits: limits) }
  }

  @Test("Reading data from a server skips unknown keys that begin with a dot")
  func reading() throws {
    let node = try Node(json: Array(#"{".unknown":{"x":1},"a":1,".value":null}"#.utf8), .read)
    #expect(text(node) == #"{"a":1}"#)
  }

  @Test("The last value of a repeated key replaces the earlier values, even if it is null")
  func duplicates() throws {
    #expect(text(try node(#"{"a":1,"b":2,"a":3}"#)) == #"{"a":3,"b":2}"#)
    #expect(text(try node(#"{"a":1,"b":2,"a":null}"#)) == #"{"b":2}"#)
  }

  @Test(
    "The plain format drops priorities and converts dense index keys to arrays",
    arguments: [
      (#"{"0":"a","2":"b"}"#, #"["a",null,"b"]"#), (#"{"1":"x"}"#, #"[null,"x"]"#),
      (#"{"3":"x"}"#, #"{"3":"x"}"#), (#"{"1":"a","3":"b"}"#, #"[null,"a",null,"b"]"#),
      (#"{"01":"x"}"#, #"{"01":"x"}"#), (#"{"0":"a","x":"b"}"#, #"{"0":"a","x":"b"}"#),
      (#"{"-1":"a","0":"b"}"#, #"{"-1":"a","0":"b"}"#), (#"{"l":[1,[2]]}"#, #"{"l":[1,[2]]}"#),
      (#"{".value":5,".priority":1}"#, "5"),
      (#"{"a":{"b":1,".priority":2},".priority":3}"#, #"{"a":{"b":1}}"#),
      ("{\"2147483647\":1}", "{\"2147483647\":1}"),
    ])
  func plain(input: String, output: String) throws {
    #expect(text(try node(input), .plain) == output)
  }

  @Test("The export format never contains arrays")
  func exportKeepsObjects() throws {
    #expect(text(try node("[1,2]")) == #"{"0":1,"1":2}"#)
  }

  @Test("The shallow format contains the keys of an object, or a leaf unchanged")
  func shallow() throws {
    #expect(text(try node(#"{"a":{"b":1},"c":2}"#), .shallow) == #"{"a":true,"c":true}"#)
    #expect(text(try node(#"{".value":7,".priority":1}"#), .shallow) == "7")
    #expect(text(.empty, .shallow) == "null")
  }

  @Test("Pretty-printed JSON has one member a line and a space before the colon")
  func pretty() throws {
    let expected = "{\n  \"a\" : {\n    \"b\" : 1\n  },\n  \"c\" : [\n    1,\n    2\n  ]\n}"
    #expect(text(try node(#"{"a":{"b":1},"c":[1,2]}"#), .plain, pretty: true) == expected)
  }

  @Test("Random nodes are unchanged after export and import")
  func roundTrip() throws {
    var random = RandomJSON(seed: 7)
    for _ in 0..<1000 {
      let tree = random.tree()
      #expect(try Node(json: tree.json()) == tree)
      #expect(try Node(json: tree.json(pretty: true)) == tree)
      #expect(try Node(json: tree.json(), .read) == tree)
      _ = try JSONValue(json: tree.json(.plain))
    }
  }
}

extension RandomJSON {
  mutating func key() -> ChildKey {
    switch below(4) {
    case 0: return ChildKey(String(below(8)))
    case 1: return ChildKey(["-NjE", "01", "é", "e\u{301}", "😀", "\u{FF5E}", " ", "-1"][below(8)])
    default: return ChildKey("k\(below(50))")
    }
  }

  mutating func tree(depth: Int = 0) -> Node {
    let priority: Priority? =
      switch below(6) {
      case 0: .number(Double(below(100)) / 4)
      case 1: .string(text())
      default: nil
      }
    if depth > 4 || below(3) == 0 {
      switch below(4) {
      case 0: return .leaf(.bool(below(2) == 0), priority: priority)
      case 1: return .leaf(.string(text()), priority: priority)
      default:
        switch number() {
        case .int(let value): return .leaf(.int(value), priority: priority)
        case .double(let value): return .leaf(.double(value), priority: priority)
        default: return .empty
        }
      }
    }
    return .object((0..<below(6)).map { _ in (key(), tree(depth: depth + 1)) }, priority: priority)
  }
}
