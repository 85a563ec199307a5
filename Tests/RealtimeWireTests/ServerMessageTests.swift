// Tests server messages: reading, writing, and encoding a push once for all subscribers. A tag is the number that a client
// gives to a filtered listen; pushes for the listen contain it.

import JSON
import RandomModels
import RealtimeModel
import RealtimeWire
import Testing

@Suite("Server messages of protocol v5")
struct ServerMessageTests {
  private func read(_ text: String) throws -> ServerMessage {
    let bytes = Array(text.utf8)
    return try bytes.withUnsafeBytes { raw in try ServerMessage(json: raw) }
  }

  @Test("Paths of more than 128 levels are errors, since code that handles paths recurses")
  func deepPaths() throws {
    for levels in [129, 1_000_000] {
      let path = String(repeating: "a/", count: levels)
      for text in [
        #"{"t":"d","d":{"a":"d","b":{"p":"\#(path)","d":1}}}"#,
        #"{"t":"d","d":{"a":"m","b":{"p":"x","d":{"\#(path)":1}}}}"#,
        #"{"t":"d","d":{"a":"rm","b":{"p":"x","d":[{"s":"\#(path)","m":1}]}}}"#,
        #"{"t":"d","d":{"a":"rm","b":{"p":"x","d":[{"e":"\#(path)","m":1}]}}}"#,
        #"{"t":"d","d":{"a":"c","b":{"p":"\#(path)"}}}"#,
      ] {
        #expect(throws: WireError.self) { try read(text) }
      }
    }
    _ = try read(#"{"t":"d","d":{"a":"d","b":{"p":"\#(String(repeating: "a/", count: 128))","d":1}}}"#)
  }

  @Test(
    "Every message is unchanged after reading and writing",
    arguments: [
      #"{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"localhost:9000","s":"abc"}}}"#,
      #"{"t":"c","d":{"t":"r","d":"other:9000"}}"#, #"{"t":"c","d":{"t":"s","d":"gone"}}"#,
      #"{"t":"c","d":{"t":"e","d":"oops"}}"#, #"{"t":"c","d":{"t":"o","d":{}}}"#,
      #"{"t":"c","d":{"t":"a","d":{}}}"#,
      #"{"t":"c","d":{"t":"n","d":{}}}"#, #"{"t":"d","d":{"r":4,"b":{"s":"ok","d":""}}}"#,
      #"{"t":"d","d":{"r":5,"b":{"s":"datastale","d":"Transaction hash does not match"}}}"#,
      #"{"t":"d","d":{"r":4,"b":{"s":"ok","d":{"a":{".value":1,".priority":2}}}}}"#,
      #"{"t":"d","d":{"a":"d","b":{"p":"shop/tea/stock","d":42}}}"#,
      #"{"t":"d","d":{"a":"d","b":{"p":"notes","d":null,"t":1}}}"#,
      #"{"t":"d","d":{"a":"m","b":{"p":"log","d":{"k2":null,"k4":{"msg":"new"}},"t":6}}}"#,
      #"{"t":"d","d":{"a":"m","b":{"p":"","d":{"posts/p1":{"t":"hi"},"count/u1":8}}}}"#,
      #"{"t":"d","d":{"a":"rm","b":{"p":"doc","d":[{"s":"a/x","e":"b","m":{"b":"r"}},{"s":"b","m":{"c":true}}]}}}"#,
      #"{"t":"d","d":{"a":"rm","b":{"p":"doc","d":[{"m":null}],"t":2}}}"#,
      #"{"t":"d","d":{"a":"c","b":{"p":"mail"}}}"#,
      #"{"t":"d","d":{"a":"c","b":{"p":"mail","q":[{"sp":"u1","sin":true}]}}}"#,
      #"{"t":"d","d":{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired"}}}"#,
      #"{"t":"d","d":{"a":"apc","b":{"s":"invalid_token","d":"no"}}}"#,
      #"{"t":"d","d":{"a":"sd","b":{"msg":"why"}}}"#,
    ])
  func roundTrip(text: String) throws {
    #expect(String(decoding: try read(text).json(), as: UTF8.self) == text)
  }

  @Test("The error of a failed request has the server's message, or else its status")
  func errors() throws {
    guard
      case .response(let failed) = try read(#"{"t":"d","d":{"r":1,"b":{"s":"permission_denied","d":"No"}}}"#),
      case .response(let bare) = try read(#"{"t":"d","d":{"r":1,"b":{"s":"permission_denied"}}}"#),
      case .response(let succeeded) = try read(#"{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}"#)
    else {
      Issue.record("responses were expected")
      return
    }
    #expect(failed.error == RealtimeError(.permissionDenied, "No"))
    #expect(bare.error == RealtimeError(.permissionDenied, "permission_denied"))
    #expect(succeeded.error == nil)
  }

  @Test("The warnings in the response to a listen are read as an object with index keys")
  func warnings() throws {
    let bytes = ServerResponse.json(3, .ok) { writer in
      writer.beginObject()
      writer.key("w")
      writer.beginArray()
      writer.string("no_index")
      writer.endArray()
      writer.endObject()
    }
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text == #"{"t":"d","d":{"r":3,"b":{"s":"ok","d":{"w":["no_index"]}}}}"#)
    guard case .response(let response) = try read(text) else {
      Issue.record("a response was expected")
      return
    }
    #expect(response.payload.descendant("w/0") == .leaf(.string("no_index")))
  }

  @Test("One encoded push serves all subscribers, whatever their tags")
  func sharedPush() {
    let text = UntaggedPush(data: .leaf(.int(1)), at: "a/b")
    #expect(
      String(decoding: text.message(tag: nil), as: UTF8.self)
        == #"{"t":"d","d":{"a":"d","b":{"p":"a/b","d":1}}}"#)
    let tagged = String(decoding: text.bytes + UntaggedPush.suffix(tag: 12), as: UTF8.self)
    #expect(tagged == #"{"t":"d","d":{"a":"d","b":{"p":"a/b","d":1,"t":12}}}"#)
  }

  @Test("Unknown messages of the protocol are accepted, and other JSON is rejected")
  func unknown() throws {
    guard case .control(.unknown("zz")) = try read(#"{"t":"c","d":{"t":"zz"}}"#),
      case .push(.unknown("zz")) = try read(#"{"t":"d","d":{"a":"zz","b":{"q":1}}}"#)
    else {
      Issue.record("unknown messages were expected")
      return
    }
    for text in ["", "{}", #"{"t":"d","d":{}}"#, #"{"t":"x","d":{}}"#, #"{"t":"d","d":{"a":"d"}}"#] {
      #expect(throws: WireError.self) { try read(text) }
    }
  }

  @Test("Random corruption gives a message or an error, never a crash")
  func corruption() {
    var random = SeededGenerator(seed: 3)
    let seed = Array(
      #"{"t":"d","d":{"a":"rm","b":{"p":"doc","d":[{"s":"a/x","e":"b","m":{"b":"r"}},{"s":"b","m":{"c":true}}],"t":2}}}"#
        .utf8)
    for _ in 0..<20_000 {
      var bytes = seed
      for _ in 0...random.below(4) { bytes[random.below(bytes.count)] = seed[random.below(seed.count)] }
      bytes.withUnsafeBytes { raw in
        if let message = try? ServerMessage(json: raw) { _ = message.json() }
      }
    }
  }
}
