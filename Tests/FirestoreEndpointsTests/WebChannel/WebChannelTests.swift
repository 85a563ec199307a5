// Tests of WebChannel over sockets: Listen and Write streams as browsers use them, and the order of a session's
// messages.
//
// The client sends messages in numbered POST requests. The server sends numbered arrays on a long response, the
// back channel.

import JSON
import NIOCore
import OrderedStore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import FirestoreEndpoints
@testable import Ports

@Suite("WebChannel", .timeLimit(.minutes(10)))
struct WebChannelTests {
  private typealias Client = WebChannelTestClient

  /// Runs a port with limits that the test selects.
  private func withPort(
    _ change: (inout WebChannelLimits) -> Void = { _ in }, _ body: (Int) async throws -> Void
  ) async throws {
    var limits = WebChannelLimits()
    change(&limits)
    try await FirestoreTestPort.with(store: try MemoryStore(), webChannel: limits) {
      try await body($0.port.port)
    }
  }

  @Test("A Listen stream delivers the writes of a Write stream")
  func listensToADocument() async throws {
    try await withPort { port in
      let (client, handshake) = try await Client.handshake(
        port, "Listen", [Client.listen(to: "books/b1", 1002)], headers: "Authorization:Bearer owner\r\n")
      #expect(handshake.status == 200)
      #expect(handshake.headers["content-type"] == "text/plain; charset=utf-8")
      #expect(handshake.text.hasSuffix("\n[[0,[\"c\",\"\(client.sid)\",\"\",8,12,30000]]]"))
      let back = try await client.open(after: 0)
      let first = try await back.arrays(until: "CURRENT").filter { !$0.text.contains("noop") }
      #expect(first.map { $0.payload.array?.count } == [1, 1, 1])
      #expect(first[0].text.contains(#"{"targetChange":{"targetChangeType":"ADD","targetIds":[1002]}}"#))
      #expect(first[1].text.contains("documentDelete"))
      #expect(try await back.next()?.text.contains("resumeToken") == true)

      let (writer, _) = try await Client.handshake(
        port, "Write", ["{\"database\":\"\(Client.database)\"}"], headers: "Authorization:Bearer owner\r\n")
      let acknowledgements = try await writer.open(after: 0)
      #expect(try await acknowledgements.nextMessage()?.text.contains("streamToken") == true)
      let posted = try await writer.post(
        [Client.set("books/b1", #"{"title":{"stringValue":"Käfer 😀"},"n":{"integerValue":"412"}}"#)], from: 1)
      #expect(posted.status == 200)
      #expect(try await acknowledgements.nextMessage()?.text.contains("commitTime") == true)
      let change = try #require(try await back.nextMessage())
      let document = change.payload.array?.first?["documentChange"]?["document"]
      #expect(document?["fields"]?["title"]?["stringValue"] == .string("Käfer 😀"))
      #expect(document?["fields"]?["n"]?["integerValue"] == .string("412"))

      let removal = try await client.post(
        ["{\"database\":\"\(Client.database)\",\"removeTarget\":1002}"], from: 1, acknowledging: change.id)
      let state = try JSONValue(json: String(removal.text.drop { $0 != "\n" }))
      #expect(state.array?.count == 3)
      _ = try await back.arrays(until: "REMOVE")
      await back.close()
      await acknowledgements.close()
    }
  }

  @Test("A failed write ends the stream with its error, and the session accepts later messages")
  func writeFailureEndsStreamOnly() async throws {
    try await withPort { port in
      let (client, _) = try await Client.handshake(
        port, "Write", ["{\"database\":\"\(Client.database)\"}"], headers: "Authorization:Bearer owner\r\n")
      let write =
        "{\"streamToken\":\"MA==\",\"writes\":[{\"delete\":\"\(Client.database)/documents/a/b\",\"currentDocument\":{\"exists\":true}}]}"
      _ = try await client.post([write, Client.set("a/b", "{}")], from: 1)
      let back = try await client.open(after: 0)
      let arrays = try await back.arrays(until: "error")
      let error = arrays.last?.payload.array?.first?["error"]
      #expect(error?["status"] == .string("NOT_FOUND"))
      #expect(error?["code"]?.int == 5)
      #expect(error?["message"]?.string?.isEmpty == false)
      #expect(try await back.next() == nil, "the response ends after the error")
      // A later message has no effect, and its POST gets a response.
      #expect(try await client.post([Client.set("a/b", "{}")], from: 3).status == 200)
      await back.close()
    }
  }

  @Test("A request without writes closes the Write stream and its WebChannel session")
  func emptyWriteClosesChannel() async throws {
    try await withPort { port in
      let (client, _) = try await Client.handshake(
        port, "Write", ["{\"database\":\"\(Client.database)\"}"], headers: "Authorization:Bearer owner\r\n")
      _ = try await client.post(["{\"streamToken\":\"MA==\",\"writes\":[]}"], from: 1)
      let back = try await client.open(after: 0)
      let arrays = try await back.arrays(until: "close")
      #expect(arrays.last?.payload == .array([.string("close")]))
      #expect(try await back.next() == nil)
      await back.close()
    }
  }

  /// Invalid credentials do not fail the handshake: clients treat a failed handshake as a network error.
  @Test(
    "Invalid credentials in the body or query of a handshake end the stream with their error",
    arguments: [
      ("Basic x", "UNAUTHENTICATED"), ("Bearer x", "INVALID_ARGUMENT"),
    ])
  func headersInBodyOrQuery(_ authorization: String, _ status: String) async throws {
    try await withPort { port in
      let messages = [Client.listen(to: "books/b1", 2)]
      for inBody in [true, false] {
        let (client, reply) = try await Client.handshake(
          port, "Listen", messages, headers: inBody ? "Authorization:\(authorization)\r\n" : nil,
          query: inBody
            ? "" : "&$httpHeaders=Authorization%3A\(authorization.replacing(" ", with: "%20"))%0D%0A")
        #expect(reply.status == 200)
        let back = try await client.open(after: 0)
        let error = try await back.nextMessage()?.payload.array?.first?["error"]
        #expect(error?["status"] == .string(status))
        await back.close()
      }
    }
  }

  @Test("A malformed message ends the stream with INVALID_ARGUMENT")
  func malformedMessages() async throws {
    try await withPort { port in
      for message in ["{", "[]", "{\"database\":5}", "{\"nothing\":1}"] {
        let (client, reply) = try await Client.handshake(port, "Listen", [message])
        #expect(reply.status == 200)
        let back = try await client.open(after: 0)
        let error = try await back.nextMessage()?.payload.array?.first?["error"]
        #expect(error?["status"] == .string("INVALID_ARGUMENT"), "\(message)")
        await back.close()
      }
    }
  }

  /// As over gRPC, earlier writes are committed and acknowledged, and later writes are not applied.
  @Test("A malformed write fails after the earlier ones are committed")
  func malformedWritesFailInOrder() async throws {
    try await withPort { port in
      for invalidPayload in ["{", "{\"writes\":[{\"nothing\":1}]}"] {
        let (client, _) = try await Client.handshake(
          port, "Write", ["{\"database\":\"\(Client.database)\"}"], headers: "Authorization:Bearer owner\r\n")
        _ = try await client.post(
          [Client.set("a/before", "{}"), invalidPayload, Client.set("a/after", "{}")], from: 1)
        let back = try await client.open(after: 0)
        let arrays = try await back.arrays(until: "error").filter { !$0.text.contains("noop") }
        #expect(arrays.count == 3 && arrays[1].text.contains("commitTime"), "\(arrays.map(\.text))")
        #expect(
          arrays.last?.payload.array?.first?["error"]?["status"] == .string("INVALID_ARGUMENT"))
        await back.close()
      }
      for (document, isStored) in [("a/before", true), ("a/after", false)] {
        let (reader, _) = try await Client.handshake(port, "Listen", [Client.listen(to: document, 2)])
        let back = try await reader.open(after: 0)
        let arrays = try await back.arrays(until: "CURRENT")
        #expect(arrays.contains { $0.text.contains("documentChange") } == isStored, "\(document)")
        await back.close()
      }
    }
  }

  /// Clients reopen a failed stream with the same targets, so one malformed target would fail every new stream. A client
  /// drops a target only after the server's REMOVE for that target.
  @Test("Only a malformed target ends, and other targets continue", arguments: [false, true])
  func malformedTargetsFailAlone(isFirst: Bool) async throws {
    let query = #""query":{"parent":"p","structuredQuery":{"where":{"#
    let deep = String(repeating: "[", count: 5_000) + String(repeating: "]", count: 5_000)
    let targets: [(String, Int)] = [
      (#""pipelineQuery":{"structuredPipeline":{"pipeline":{}}},"targetId":7"#, 12),
      (#"\#(query)"fieldFilter":{"op":"LIKE"}}}},"targetId":7"#, 3),
      (#""targetId":"7","resumeToken":"*""#, 3),
      (#"\#(query)"fieldFilter":{"value":{"stringValue":"\ud800"}}}}},"targetId":7.0"#, 3),
      (#""resumeToken":"\ud800\"}","targetId":7"#, 3), (#"\#(query)"x":"\\"}}},"targetId":7"#, 3),
      (#""documents":{"documents":[1,{"a":"]}"}]},"target_id":7"#, 3),
      (#""nothing":\#(deep),"targetId":7"#, 3),
    ]
    try await withPort { port in
      for (target, code) in targets {
        let message = "{\"database\":\"\(Client.database)\",\"addTarget\":{\(target)}}"
        let validTarget = Client.listen(to: "a/b", 2)
        let messages = isFirst ? [message, validTarget] : [validTarget, message]
        let (client, _) = try await Client.handshake(port, "Listen", messages)
        let back = try await client.open(after: 0)
        var removal: JSONValue?
        var isCurrent = false
        while removal == nil || !isCurrent, let array = try await back.nextMessage() {
          let change = array.payload.array?.first?["targetChange"]
          if change?["targetChangeType"] == .string("REMOVE") { removal = change }
          if change?["targetChangeType"] == .string("CURRENT") { isCurrent = true }
          #expect(array.payload.array?.first?["error"] == nil, "\(target): \(array.text)")
        }
        #expect(removal?["targetIds"] == .array([.int(7)]) && isCurrent, "\(target)")
        #expect(removal?["cause"]?["code"]?.int == Int64(code), "\(target)")
        #expect(removal?["cause"]?["message"]?.string?.isEmpty == false, "\(target)")
        await back.close()
      }
    }
  }

  @Test("A malformed target without a usable ID ends the stream")
  func malformedTargetsWithoutID() async throws {
    try await withPort { port in
      for members in [
        #""addTarget":{"pipelineQuery":{}}"#, #""addTarget":{"targetId":1,"targetId":2}"#,
        #""addTarget":{"targetId":3000000000}"#, #""addTarget":[]"#,
        #""addTarget":{"targetId":2,"query":{]}"#,
        #""addTarget":{"targetId":2},"removeTarget":2"#, #""addTarget":{"targetId":2,"x":1},"addTarget":{}"#,
        #""addTarget":{"targetId":2,"x":{}"#, #""addTarget":{"targetId":2}}}}}"#,
        #""addTarget":{"targetId":"#,
      ] {
        let message = "{\"database\":\"\(Client.database)\",\(members)}"
        let (client, _) = try await Client.handshake(port, "Listen", [message])
        let back = try await client.open(after: 0)
        let error = try await back.nextMessage()?.payload.array?.first?["error"]
        #expect(error?["status"] == .string("INVALID_ARGUMENT"), "\(members)")
        await back.close()
      }
    }
  }

  @Test("Reordered and repeated POSTs are applied once, in order")
  func postsOutOfOrderAndTwice() async throws {
    try await withPort { port in
      let (client, _) = try await Client.handshake(
        port, "Write", ["{\"database\":\"\(Client.database)\"}"], headers: "Authorization:Bearer owner\r\n")
      func write(_ n: Int) -> String { Client.set("a/b", "{\"n\":{\"integerValue\":\"\(n)\"}}") }
      _ = try await client.post([write(3)], from: 3)
      _ = try await client.post([write(1), write(2)], from: 1)
      _ = try await client.post([write(1), write(2), write(3)], from: 1)
      // An empty POST is a ping.
      #expect(try await client.post([], from: 4).status == 200)
      let back = try await client.open(after: 0)
      var tokens: [String] = []
      for _ in 0..<4 {
        tokens.append(try await back.nextMessage()?.payload.array?.first?["streamToken"]?.string ?? "")
      }
      #expect(tokens == ["MA==", "MQ==", "Mg==", "Mw=="])
      await back.close()
      let (reader, _) = try await Client.handshake(port, "Listen", [Client.listen(to: "a/b", 2)])
      let listenChannel = try await reader.open(after: 0)
      #expect(
        try await listenChannel.arrays(until: "documentChange").last?.text.contains("\"integerValue\":\"3\"")
          == true)
      await listenChannel.close()
    }
  }

  @Test("Unicode spellings of a field name stay distinct")
  func spellings() async throws {
    try await withPort { port in
      let fields = "{\"\u{E9}\":{\"integerValue\":\"1\"},\"e\u{301}\":{\"integerValue\":\"2\"}}"
      let (client, _) = try await Client.handshake(
        port, "Write", ["{\"database\":\"\(Client.database)\"}", Client.set("a/b", fields)],
        headers: "Authorization:Bearer owner\r\n")
      let acknowledgements = try await client.open(after: 0)
      #expect(try await acknowledgements.arrays(until: "commitTime").count >= 2)
      await acknowledgements.close()
      let (reader, _) = try await Client.handshake(port, "Listen", [Client.listen(to: "a/b", 2)])
      let back = try await reader.open(after: 0)
      let change = try await back.arrays(until: "documentChange").last
      let read = change?.payload.array?.first?["documentChange"]?["document"]?["fields"]?.object
      #expect(read?.members.map { Array($0.key.unicodeScalars).count }.sorted() == [1, 2])
      await back.close()
    }
  }

  @Test("A new back channel resends the arrays of a disconnected one")
  func disconnectedBackChannelsAreReplayed() async throws {
    try await withPort { port in
      let (client, _) = try await Client.handshake(port, "Listen", [Client.listen(to: "a/b", 2)])
      var back = try await client.open(after: 0)
      let first = try await back.arrays(until: "CURRENT")
      await back.close()
      back = try await client.open(after: 0)
      let again = try await back.arrays(until: "CURRENT")
      #expect(again.map(\.text) == first.map(\.text))
      let newer = try await client.open(after: again.last?.id ?? 0)
      // The older back channel ends with a complete response.
      while try await back.next() != nil {}
      #expect(back.hasEnded)
      let next = try #require(try await newer.next())
      #expect(next.id > (again.last?.id ?? 0))
      await newer.close()
    }
  }
}
