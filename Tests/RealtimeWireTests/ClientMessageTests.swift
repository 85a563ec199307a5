// Tests client messages: reading, writing, and finding the request number of a malformed message.

import RandomModels
import RealtimeModel
import RealtimeWire
import Testing

@Suite("Client messages of protocol v5")
struct ClientMessageTests {
  private func read(_ text: String) throws -> ClientMessage {
    let bytes = Array(text.utf8)
    return try bytes.withUnsafeBytes { raw in try ClientMessage(json: raw) }
  }

  private func request(_ data: String) throws -> ClientRequest {
    guard case .request(let request) = try read("{\"t\":\"d\",\"d\":\(data)}") else {
      throw WireError.notAMessage("a request was expected")
    }
    return request
  }

  private func error(_ data: String) throws -> RealtimeError? {
    if case .invalid(_, let error) = try request(data).action { return error }
    return nil
  }

  @Test(
    "Every request is unchanged after reading and writing",
    arguments: [
      #"{"t":"c","d":{"t":"p","d":{}}}"#, #"{"t":"c","d":{"t":"a","d":{}}}"#,
      #"{"t":"c","d":{"t":"n","d":{}}}"#,
      #"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/shop","h":""}}}"#,
      #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/mail","q":{"sp":"u1","sin":true,"ep":"u1","ein":true,"i":"to"},"t":3,"h":""}}}"#,
      #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/doc","h":"qZ=","ch":{"ps":["a/x","b"],"hs":["1M","ZX",""]}}}}"#,
      #"{"t":"d","d":{"r":3,"a":"n","b":{"p":"/shop"}}}"#,
      #"{"t":"d","d":{"r":3,"a":"n","b":{"p":"/log","q":{"l":2,"vf":"r"},"t":6}}}"#,
      #"{"t":"d","d":{"r":4,"a":"g","b":{"p":"/","q":{}}}}"#,
      #"{"t":"d","d":{"r":4,"a":"g","b":{"p":"/notes","q":{"i":"due","l":2,"vf":"r"}}}}"#,
      #"{"t":"d","d":{"r":5,"a":"p","b":{"p":"/shop/tea","d":{"stock":42,".priority":1}}}}"#,
      #"{"t":"d","d":{"r":5,"a":"p","b":{"p":"/shop/tea/stock","d":42,"h":"FKQEQrg9eSmOibuEATBfMSlup8g="}}}"#,
      #"{"t":"d","d":{"r":5,"a":"p","b":{"p":"/q/z/.priority","d":3}}}"#,
      #"{"t":"d","d":{"r":7,"a":"m","b":{"p":"/","d":{"posts/p1":{"t":"hi"},"gone":null,"a/.priority":2}}}}"#,
      #"{"t":"d","d":{"r":8,"a":"o","b":{"p":"/state/u1","d":{"at":{".sv":"timestamp"},"on":false}}}}"#,
      #"{"t":"d","d":{"r":9,"a":"om","b":{"p":"/state","d":{"u1":false}}}}"#,
      #"{"t":"d","d":{"r":10,"a":"oc","b":{"p":"/state","d":null}}}"#,
      #"{"t":"d","d":{"r":11,"a":"auth","b":{"cred":"a.b.c"}}}"#,
      #"{"t":"d","d":{"r":11,"a":"gauth","b":{"cred":"owner","noauth":true}}}"#,
      #"{"t":"d","d":{"r":11,"a":"auth","b":{"cred":"owner","authvar":{"uid":"u1"}}}}"#,
      #"{"t":"d","d":{"r":12,"a":"unauth","b":{}}}"#,
      #"{"t":"d","d":{"r":13,"a":"appcheck","b":{"token":"t"}}}"#,
      #"{"t":"d","d":{"r":14,"a":"unappeck","b":{}}}"#,
      #"{"t":"d","d":{"r":15,"a":"s","b":{"c":{"sdk.js.9-5-0":1}}}}"#,
    ])
  func roundTrip(text: String) throws {
    #expect(String(decoding: try read(text).json(), as: UTF8.self) == text)
  }

  @Test("Fields may be in any order, and unknown fields are skipped")
  func anyOrder() throws {
    let text = #"{"x":[1],"d":{"y":{},"b":{"z":1,"d":5,"p":"a"},"a":"p","r":9},"t":"d"}"#
    guard case .request(let request) = try read(text), case .put(let path, let data, nil) = request.action
    else {
      Issue.record("a set was expected")
      return
    }
    #expect(request.number == 9)
    #expect(path == "a")
    #expect(data == .leaf(.int(5)))
  }

  @Test("The legacy names of listen and unlisten are accepted")
  func legacyActionNames() throws {
    guard case .listen(let listen) = try request(#"{"r":1,"a":"l","b":{"p":"/x"}}"#).action else {
      Issue.record("a listen was expected")
      return
    }
    #expect(listen.path == "x" && listen.tag == nil && listen.query.isDefault)
    guard case .unlisten = try request(#"{"r":1,"a":"u","b":{"p":"/x"}}"#).action else {
      Issue.record("an unlisten was expected")
      return
    }
  }

  @Test("A listen keeps its query object byte for byte")
  func verbatimQuery() throws {
    let query = #"{ "i":"to", "sp" : "u1","sin":true }"#
    guard
      case .listen(let listen) = try request(#"{"r":1,"a":"q","b":{"p":"/m","q":"# + query + #","t":4}}"#)
        .action
    else {
      Issue.record("a listen was expected")
      return
    }
    #expect(listen.queryText.map { String(decoding: $0, as: UTF8.self) } == query)
    #expect(listen.tag == 4)
    #expect(listen.query.ordering == .child("to"))
  }

  @Test("An invalid request keeps its number, so that the server can respond")
  func invalidRequests() throws {
    #expect(try error(#"{"r":1,"a":"p","b":{"p":"/a","d":{"b.c":1}}}"#)?.status == .failure)
    #expect(try error(#"{"r":1,"a":"p","b":{"d":1}}"#) == .invalidPath)
    #expect(try error(#"{"r":1,"a":"p","b":{"p":"/a"}}"#) == .invalidData("the request has no data"))
    #expect(try error(#"{"r":1,"a":"p","b":{"p":"/a$","d":1}}"#) == .invalidPath)
    #expect(try error(#"{"r":1,"a":"q","b":{"p":"/a/.priority"}}"#) == .invalidPath)
    #expect(try error(#"{"r":1,"a":"p","b":{"p":7,"d":1}}"#)?.status == .failure)
    #expect(try error(#"{"r":1,"a":"p"}"#) == .invalidPath)
    #expect(try error(#"{"r":1,"a":"p","b":{"p":"/a/.priority","d":true}}"#)?.status == .failure)
    #expect(try error(#"{"r":1,"a":"m","b":{"p":"/a","d":{"x/$":1}}}"#)?.status == .failure)
    #expect(try error(#"{"r":1,"a":"m","b":{"p":"/a","d":[1]}}"#)?.status == .failure)
    #expect(try error(#"{"r":1,"a":"q","b":{"p":"/a","q":{"l":0},"t":1}}"#)?.status == .failure)
    #expect(
      try error(#"{"r":1,"a":"q","b":{"p":"/a","h":"x","ch":{"ps":["a"],"hs":[""]}}}"#)?.status == .failure)
    #expect(try error(#"{"r":1,"a":"auth","b":{}}"#)?.status == .invalidToken)
    #expect(try error(#"{"b":{"p":"/a","d":{"b.c":1}},"r":1,"a":"p"}"#)?.status == .failure)
    let deep = String(repeating: "[", count: 300) + String(repeating: "]", count: 300)
    #expect(
      try error(#"{"r":1,"a":"p","b":{"p":"/a","d":"# + deep + "}}") == .invalidData("nested too deeply"))
  }

  @Test("A request with an unknown action is read with the action's name")
  func unknownAction() throws {
    guard case .unknown("zz") = try request(#"{"r":1,"a":"zz","b":{}}"#).action else {
      Issue.record("an unknown action was expected")
      return
    }
  }

  @Test(
    "Bytes that are not a message are rejected",
    arguments: [
      "", "x", "[]", "1", "{}", #"{"t":"d"}"#, #"{"t":"z","d":{}}"#, #"{"t":"d","d":{"a":"p","b":{}}}"#,
      #"{"t":"d","d":[]}"#, #"{"t":1,"d":{}}"#, #"{"t":"d","d":{"r":"1","a":"p"}}"#,
      #"{"t":"d","d":{"r":1,"a":"s"}"#,
    ])
  func rejected(text: String) {
    #expect(throws: WireError.self) { try read(text) }
  }

  @Test("Random corruption gives a message or an error, never a crash")
  func corruption() throws {
    var random = SeededGenerator(seed: 2)
    let seeds = [
      #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/mail","q":{"sp":"u1","l":2,"i":"to"},"t":3,"h":"","ch":{"ps":[],"hs":[""]}}}}"#,
      #"{"d":{"a":"q","b":{"h":"","p":"/mail","q":{"i":"to","l":2,"sp":"u1"},"t":3},"r":2},"t":"d"}"#,
    ].map { Array($0.utf8) }
    for round in 0..<20_000 {
      let seed = seeds[round % 2]
      var bytes = seed
      for _ in 0...random.below(4) {
        switch random.below(3) {
        case 0: bytes[random.below(bytes.count)] = UInt8(random.below(256))
        case 1: bytes.remove(at: random.below(bytes.count))
        default: bytes.insert(seed[random.below(seed.count)], at: random.below(bytes.count))
        }
      }
      bytes.withUnsafeBytes { raw in
        let number = ClientMessage.requestNumber(in: raw)
        guard let message = try? ClientMessage(json: raw) else { return }
        _ = message.json()
        guard case .request(let request) = message else { return }
        #expect(number == nil || number == request.number, "\(String(decoding: raw, as: UTF8.self))")
      }
    }
  }

  @Test("The request number is found in the first bytes of an incomplete message")
  func numberBeforeTheBody() {
    func number(_ text: String) -> Int64? {
      Array(text.utf8).withUnsafeBytes { ClientMessage.requestNumber(in: $0) }
    }
    #expect(number(#"{"t":"d","d":{"r":17,"a":"p","b":{"p":"/x","d":"aaaaaa"#) == 17)
    #expect(number(#"{"t":"d","d":{"a":"p","b":{"p":"/x","d":"aaaaaa"#) == nil)
    #expect(number("") == nil)
    #expect(number(#"{"t":"d","d":{"r":17"#) == nil)
  }

  @Test("A number after the body is found only if it is the request's own member")
  func numberAfterTheBody() {
    func number(_ text: String) -> Int64? {
      let bytes = Array(text.utf8)
      let expected = bytes.withUnsafeBytes { ClientMessage.requestNumber(in: $0) }
      // Splitting the message anywhere gives the same number.
      for cut in bytes.indices {
        var scanner = RequestNumberScanner()
        bytes[..<cut].withUnsafeBytes { scanner.scan($0) }
        bytes[cut...].withUnsafeBytes { scanner.scan($0) }
        #expect(scanner.value == expected, "\(text) cut at \(cut)")
      }
      return expected
    }
    #expect(number(#"{"d":{"a":"p","b":{"d":"x","p":"/x"},"r":5},"t":"d"}"#) == 5)
    #expect(number(#" { "t" : "d" , "d" : { "a" : "p" , "b" : { } , "r" : -5 } } "#) == -5)
    #expect(number(#"{"d":{"a":"p","b":{"d":[nan,inf,"\xFF","\"}",{"r":7}],"r":8},"r":9},"t":"d"}"#) == 9)
    #expect(number(#"{"x":[{"r":1}],"d":{"b":{"d":{"r":2}},"r":3},"t":"d"}"#) == 3)
    for text in [
      // Text inside the body, and members of the body.
      #"{"d":{"a":"p","b":{"d":"\"},\"r\":5},\"t\":\"d\"}"}},"t":"d"}"#,
      #"{"d":{"a":"p","b":{"r":5}},"t":"d"}"#,
      #"{"d":{"a":"p","b":{"d":1,"r":5}"#, #"{"d":{"a":"p","b":{"d":{"x":1,"r":5},"t":"d"}"#,
      // Members of other objects.
      #"{"d":{"b":{}},"e":{"r":5},"t":"d"}"#, #"{"d":[{"b":{}},{"r":5}],"t":"d"}"#,
      #"{"d":{"b":{}},"d":{"r":5},"t":"d"}"#, #"[{"d":{"b":{},"r":5},"t":"d"}]"#,
      // An incomplete message, and more than one message.
      #"{"d":{"b":{},"r":5},"t":"d""#, #"{"d":{"b":{},"r":5}"#, #"{"d":{"b":{},"r":5},"t":"d"}}"#,
      #"{"d":{"b":{},"r":5},"t":"d"},"#, #"{"d":{"b":{},"r":5}}"#, #"{"d":{"b":{},"r":5},"t":"c"}"#,
      #"{"d":{"b":{},"r":5,},"t":"d"}"#, #"{"d":{"b":{} "r":5},"t":"d"}"#,
      #"{"d":{"b":{"x":"},"r":5},"t":"d"}"#,
      // Values other than integers.
      #"{"d":{"b":{},"r":"5"},"t":"d"}"#, #"{"d":{"b":{},"r":5.5},"t":"d"}"#,
      #"{"d":{"b":{},"r":+5},"t":"d"}"#,
      #"{"d":{"b":{},"r":99999999999999999999},"t":"d"}"#, #"{"d":{"b":{},"\u0072":5},"t":"d"}"#,
      #"{"d":{"b":{},"r":0000000000000000000000000005},"t":"d"}"#,
    ] { #expect(number(text) == nil, "\(text)") }
  }
}
