// Tests of request parsing: bodies and query parameters, valid and malformed.
//
// A WebChannel client sends messages in the bodies of POST requests (forward POSTs). A body has an offset `ofs`,
// and its fields `req<i>___data__` contain the messages. The number of a message is the offset plus i.

import NIOCore
import RandomModels
import Testing

@testable import FirestoreEndpoints
@testable import Ports

@Suite("WebChannel request parsing")
struct ForwardBodyTests {
  private func read(_ text: String) throws -> ForwardBody {
    try ForwardBody(ByteBuffer(string: text), limits: WebChannelLimits())
  }

  private func messages(_ text: String) throws -> [String] {
    try read(text).messages.map { "\($0.number):\($0.bytes.map { String(buffer: $0) } ?? "-")" }
  }

  @Test("The number of a message is the body's offset plus its index in the body")
  func numbersAreRelativeToTheOffset() throws {
    #expect(try messages("count=2&ofs=7&req0___data__=%7B%7D&req1___data__=a%20b+c") == ["7:{}", "8:a b c"])
    #expect(try messages("count=2&ofs=40&req100___data__=y&req3___data__=x") == ["43:x", "140:y"])
    #expect(try messages("count=1&req0___data__=x") == ["0:x"])
  }

  @Test("A message that the client could not encode has no contents, but keeps its number")
  func unencodableMessagesUseTheirNumber() throws {
    #expect(try messages("count=2&ofs=0&req0_type=_badmap&req1___data__=x") == ["0:-", "1:x"])
    #expect(try messages("count=2&ofs=5&req1___data__=x") == ["5:-", "6:x"])
  }

  @Test("A body without messages, by which clients keep a session alive, is valid")
  func pings() throws {
    #expect(try messages("count=0") == [])
    #expect(try messages("") == [])
  }

  @Test("The body of a handshake contains HTTP headers")
  func headersOfTheHandshake() throws {
    let body = try read(
      "headers=X-Goog-Api-Client%3Agl-js%2F%20fire%2F12.0.0%0D%0AAuthorization%3ABearer%20a%3Ab%0D%0A&count=0"
    )
    let headers = HeaderBlock(try #require(body.headers))
    #expect(headers["authorization"] == "Bearer a:b")
    #expect(headers["x-goog-api-client"] == "gl-js/ fire/12.0.0")
    #expect(headers["x-missing"] == nil)
  }

  @Test(
    "Malformed bodies are rejected",
    arguments: [
      "count=x", "count=-1", "count=1001", "count=0&req0___data__=x", "count=1&ofs=-1&req0___data__=x",
      "count=1&reqx___data__=x", "count=1&req0=x", "count=%zz", "count=1&req0___data__=%4",
      "count=1&ofs=99999999999999999999&req0___data__=x", "count=1&req-1___data__=x",
    ])
  func malformedBodies(_ body: String) {
    #expect(throws: WebChannelError.self) { try read(body) }
  }

  @Test("A body with too many fields is rejected")
  func fieldLimit() {
    let body = "count=1" + String(repeating: "&a=b", count: 5000)
    #expect(throws: WebChannelError.self) { try read(body) }
  }

  @Test("Random bytes are rejected, or yield messages with increasing numbers within the limits")
  func randomBytes() throws {
    var random = SeededGenerator(seed: 5)
    let fragments = [
      "count=", "ofs=", "req", "___data__=", "_", "=", "&", "%", "%2", "%41", "+", "1", "0", "-1",
      "99999999999",
      "headers=", "a:b%0D%0A", "\u{0}", "é", "req0___data__=%7B%7D", "count=1&",
    ]
    var limits = WebChannelLimits()
    limits.maximumMessages = 3
    var parsedCount = 0
    for _ in 0..<20_000 {
      var bytes = Array(
        (0..<random.below(9)).map { _ in fragments[random.below(fragments.count)] }.joined().utf8)
      if !bytes.isEmpty, random.below(4) == 0 { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
      guard let body = try? ForwardBody(ByteBuffer(bytes: bytes), limits: limits) else { continue }
      parsedCount += 1
      let numbers = body.messages.map(\.number)
      #expect(numbers == Array(Set(numbers)).sorted())
      #expect(numbers.count <= 3 && numbers.allSatisfy { $0 >= 0 })
      _ = HeaderBlock(body.headers ?? "")
    }
    #expect(parsedCount > 1000)
  }

  @Test("Query parameters select the operation, and invalid ones are rejected")
  func parameters() throws {
    func query(_ text: String, post: Bool = true) throws -> WebChannelOperation {
      try WebChannelOperation(isPost: post, try RequestTarget("/x?" + text))
    }
    #expect(
      try query("VER=8&RID=1&CVER=22&X-HTTP-Session-Id=gsessionid")
        == .handshake(headers: nil, wantsSessionHeader: true))
    #expect(
      try query("VER=8&RID=1&%24httpHeaders=Authorization%3ABearer%20owner%0D%0A")
        == .handshake(headers: "Authorization:Bearer owner\r\n", wantsSessionHeader: false))
    #expect(try query("VER=8&RID=2&SID=s&AID=4") == .forward(session: "s", acknowledged: 4))
    #expect(try query("RID=2&SID=s&TYPE=terminate") == .terminate(session: "s"))
    #expect(try query("RID=2&SID=s&TYPE=terminate", post: false) == .terminate(session: "s"))
    #expect(
      try query("RID=rpc&SID=s&AID=0&CI=1&TO=5000&TYPE=xmlhttp", post: false)
        == .back(session: "s", BackChannelRequest(acknowledged: 0, isStreaming: false, timeout: .seconds(5))))
    for (text, post) in [
      ("VER=7&RID=1", true), ("RID=1", true), ("VER=8", true), ("RID=2&SID=s&AID=x", true),
      ("TYPE=terminate", true), ("RID=rpc&SID=s", false), ("RID=rpc&AID=0", false),
      ("RID=1&SID=s&AID=0", false),
      ("RID=rpc&SID=s&AID=-2", false), ("RID=rpc&SID=s&AID=0&CI=1&TO=-1", false),
    ] {
      #expect(throws: WebChannelError.self, "\(text)") { try query(text, post: post) }
    }
  }
}
