// Tests long polling over real sockets. The client sends segments of messages in the URLs of GET requests (polls), and
// the server answers with scripts that contain messages. The server holds a poll, which means that it delays the
// answer, until there is a message. Also tests how sessions end.

import Access
import NIOCore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Long polling", .timeLimit(.minutes(10)))
struct LongPollTests {
  static func data(_ request: String) -> String { "{\"t\":\"d\",\"d\":\(request)}" }

  static func ok(_ number: Int, _ payload: String = "\"\"") -> String {
    data(#"{"r":\#(number),"b":{"s":"ok","d":\#(payload)}}"#)
  }

  @Test(
    "a session writes and listens; its push precedes the acknowledgement, and strings are escaped for scripts"
  )
  func session() async throws {
    try await RealtimeTestServer.run { server in
      var client = try await LongPollClient(server)
      #expect(client.hello.contains(#""t":"h""#) && client.hello.contains(#""v":"5""#))
      let text = "ü 𝄞 </script> \u{2028}\u{2029}"
      let received = try await client.send(
        [
          Self.data(#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#),
          Self.data(#"{"r":2,"a":"p","b":{"p":"/a/b","d":"\#(text)"}}"#), #"{"t":"c","d":{"t":"p","d":{}}}"#,
        ], awaiting: 4)
      #expect(received.first == Self.ok(1, "{}"))
      #expect(
        received.contains(#"{"t":"c","d":{"t":"o","d":null}}"#)
          || received.contains { $0.contains(#""t":"o""#) })
      let push = try #require(received.firstIndex { $0.contains(#""a":"d""#) })
      #expect(received[push].contains(text))
      #expect(try #require(received.firstIndex(of: Self.ok(2))) > push)
    }
  }

  @Test("a large message is sent in segments and received as one message")
  func large() async throws {
    try await RealtimeTestServer.run { server in
      var client = try await LongPollClient(server)
      let text = String(repeating: "0123456789", count: 2_000)
      let received = try await client.send(
        [
          Self.data(#"{"r":1,"a":"p","b":{"p":"/a","d":"\#(text)"}}"#),
          Self.data(#"{"r":2,"a":"g","b":{"p":"/a","q":{}}}"#),
        ], awaiting: 2)
      #expect(received == [Self.ok(1), Self.ok(2, "\"\(text)\"")])
    }
  }

  @Test("a session whose client stops polling ends when the server needs its memory for another request")
  func unreadSession() async throws {
    var port = PortLimits()
    port.memory = MemoryBudget(limit: 8 << 20, minimumAge: .zero)
    try await RealtimeTestServer.run(port: port) { [port] server in
      var client = try await LongPollClient(server)
      let listens = ["a", "b", "c"].enumerated().map { number, name in
        Self.data(#"{"r":\#(number),"a":"q","b":{"p":"/\#(name)","h":""}}"#)
      }
      _ = try await client.send(listens, awaiting: 3)
      let text = "\"" + String(repeating: "x", count: 1_500_000) + "\""
      for name in ["a", "b", "c"] {
        #expect(try await server.rest("PUT", "/\(name).json?ns=demo&print=silent", body: text).status == 204)
      }
      #expect(try await eventually { port.memory.used > 3 << 20 }, "\(port.memory.used)")
      // The session outweighs the request only with time, because both have the same address.
      try await Task.sleep(for: .seconds(2))
      let large = "\"" + String(repeating: "x", count: 6_500_000) + "\""
      #expect(try await server.rest("PUT", "/d.json?ns=demo&print=silent", body: large).status == 204)
      #expect(try await client.poll() == [.close(after: nil)])
      #expect(try await eventually { port.memory.used == 0 }, "\(port.memory.used) bytes are still reserved")
    }
  }

  @Test("the server answers a held poll on a message, on a newer poll, and after the maximum time")
  func heldPolls() async throws {
    var limits = RealtimeEndpointLimits.standard
    limits.longPollHold = .milliseconds(200)
    try await RealtimeTestServer.run(limits: limits) { server in
      var client = try await LongPollClient(server)
      #expect(try await client.poll() == [.batch(1, [])])
      _ = try await client.send([Self.data(#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#)], awaiting: 1)
    }
    try await RealtimeTestServer.run { server in
      var client = try await LongPollClient(server)
      _ = try await client.send([Self.data(#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#)], awaiting: 1)
      let target = "/.lp?id=\(client.id)&pw=\(client.password)&ns=demo&ser="
      async let news = LongPollClient.get(server, target + "500")
      async let written = server.rest("PUT", "/a.json?ns=demo", body: "5")
      #expect(try await written.status == 200)
      #expect(try await news == [.batch(2, [Self.data(#"{"a":"d","b":{"p":"a","d":5}}"#)])])
      // Sends two polls. The second one to arrive releases the first one with an empty batch.
      let older = Task { try await LongPollClient.get(server, target + "501") }
      let newer = Task { try await LongPollClient.get(server, target + "502") }
      let first = try await withThrowingTaskGroup { group in
        group.addTask { try await older.value }
        group.addTask { try await newer.value }
        let first = try await group.next()
        _ = try await server.rest("PUT", "/a.json?ns=demo", body: "6")
        try await group.waitForAll()
        return first
      }
      // If the poll with the higher number arrives first, the server releases both, in either order.
      #expect(first == [.batch(3, [])] || first == [.batch(4, [])])
    }
  }

  @Test("a poll with a wrong id or password, or of an ended session, receives the end of the session")
  func unknown() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await LongPollClient(server)
      let other = try await LongPollClient(server)
      for (id, password) in [(client.id, other.password), ("nobody", "x")] {
        let calls = try await LongPollClient.get(server, "/.lp?id=\(id)&pw=\(password)&ser=1&ns=demo")
        #expect(calls == [.close(after: nil)])
      }
      // A client without the password does not end the session.
      _ = try await LongPollClient.get(server, "/.lp?disconn=t&id=\(client.id)&pw=\(other.password)")
      var alive = client
      #expect(
        try await alive.send([Self.data(#"{"r":1,"a":"p","b":{"p":"/a","d":1}}"#)], awaiting: 1) == [
          Self.ok(1)
        ])
      _ = try await LongPollClient.get(server, "/.lp?disconn=t&id=\(client.id)&pw=\(client.password)")
      #expect(try await alive.poll() == [.close(after: nil)])
    }
  }

  @Test(
    "invalid requests are rejected with a reason, and none of their text becomes part of a script")
  func malformed() async throws {
    try await RealtimeTestServer.run { server in
      for target in [
        "/.lp", "/.lp?id=a", "/.lp?id=a%27b&pw=c", "/.lp?dframe=t&id=%3Cscript%3E&pw=x",
        "/.lp?start=t&cb=1%3Balert",
        "/.lp?start=t&v=4", "/.lp?id=a&pw=b&ser=1&seg0=x&ts0=1&d0=AAAA",
        "/.lp?id=a&pw=b&seg0=0&ts0=0&d0=AAAA",
        "/.lp?id=a&pw=b&seg0=0&ts0=1",
      ] {
        let answer = try await server.rest("GET", target)
        #expect(
          answer.status == 400 && answer.headers["content-type"]?.hasPrefix("application/json") == true,
          "\(target)")
      }
      #expect(try await server.rest("POST", "/.lp?start=t", body: "").status == 405)
      let page = try await server.rest("GET", "/.lp?dframe=t&id=abc&pw=def")
      #expect(page.headers["content-type"]?.hasPrefix("text/html") == true)
      #expect(page.body.contains("/.lp?disconn=t&id=abc&pw=def"))
    }
  }

  @Test(
    "an invalid message ends the session with a reason",
    arguments: [
      ("&seg0=5000&ts0=1&d0=AAAA", "too far ahead"), ("&seg0=0&ts0=1&d0=%21%21%21%21", "not URL-safe base64"),
      ("&seg0=0&ts0=1&d0=" + LongPollClient.base64(Array("{\"t\":".utf8)), "not JSON"),
    ])
  func refused(segment: String, reason: String) async throws {
    try await RealtimeTestServer.run { server in
      var client = try await LongPollClient(server)
      let calls = try await client.poll(segment)
      guard calls.count == 2, case .batch(1, let messages) = calls[0] else { throw RawClient.Failure.closed }
      #expect(
        messages.count == 1 && messages[0].contains(#""t":"e""#) && messages[0].contains(reason),
        "\(messages)")
      #expect(calls[1] == .close(after: 1))
      #expect(try await client.poll() == [.close(after: nil)])
    }
  }

  @Test(
    "onDisconnect operations run when the page is unloaded, when polls stop, and when the client reconnects")
  func onDisconnect() async throws {
    var limits = RealtimeEndpointLimits.standard
    limits.lostAfter = .seconds(4)
    limits.longPollHold = .milliseconds(500)
    try await RealtimeTestServer.run(limits: limits) { server in
      let watcher = try await RawSocket.open(server)
      try await watcher.play(
        [#"{"r":1,"a":"q","b":{"p":"/s","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      for (number, cause) in ["disconn", "silence", "return"].enumerated() {
        var client = try await LongPollClient(server)
        let received = try await client.send(
          [Self.data(#"{"r":1,"a":"o","b":{"p":"/s","d":\#(number + 1)}}"#)], awaiting: 1)
        #expect(received == [Self.ok(1)])
        if cause == "disconn" {
          _ = try await LongPollClient.get(server, "/.lp?disconn=t&id=\(client.id)&pw=\(client.password)")
        } else if cause == "return" {
          _ = try await LongPollClient(server, "v=5&ns=demo&ls=\(client.session)")
        }
        #expect(try await watcher.next() == #"{"a":"d","b":{"p":"s","d":\#(number + 1)}}"#)
      }
    }
  }

  @Test(
    "a session that another connection takes over ends: its held poll is answered, and its writes are rejected"
  )
  func replacedSession() async throws {
    for isUsed in [false, true] {
      try await RealtimeTestServer.run { server in
        var old = try await LongPollClient(server)
        if isUsed {
          let received = try await old.send(
            [Self.data(#"{"r":1,"a":"p","b":{"p":"/a","d":1}}"#)], awaiting: 1)
          #expect(received == [Self.ok(1)])
        }
        let target = "/.lp?id=\(old.id)&pw=\(old.password)&ns=demo&ser="
        async let heldPolls = LongPollClient.get(server, target + "500")
        let new = try await RawSocket.open(server, "v=5&ns=demo&ls=\(old.session)")
        // The poll gets the end of the session, whether it arrives before or after the new connection.
        guard case .close? = try await heldPolls.last else { throw RawClient.Failure.closed }
        let segment = old.segments(of: Self.data(#"{"r":2,"a":"p","b":{"p":"/lost","d":1}}"#))[0]
        #expect(try await LongPollClient.get(server, target + "501" + segment) == [.close(after: nil)])
        try await new.play(
          [#"{"r":1,"a":"g","b":{"p":"/lost","q":{}}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":null}}"#])
      }
    }
  }

  @Test("the number of sessions and the output queue of each session are limited")
  func bounds() async throws {
    var limits = RealtimeEndpointLimits.standard
    limits.longPollSessions = 2
    limits.data.queuedOutputBytes = 100_000
    try await RealtimeTestServer.run(limits: limits) { server in
      var client = try await LongPollClient(server)
      let other = try await LongPollClient(server)
      let start = "/.lp?start=t&ns=demo&v=5"
      let refused = try await server.rest("GET", start)
      #expect(refused.status == 503 && refused.body.contains("2 long-polling sessions"))
      _ = try await LongPollClient.get(server, "/.lp?disconn=t&id=\(other.id)&pw=\(other.password)")
      _ = try await client.send([Self.data(#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#)], awaiting: 1)
      // The session that disconnected no longer counts towards the limit of sessions.
      #expect(try await eventually { try await server.rest("GET", start).status == 200 })
      let text = String(repeating: "x", count: 60_000)
      for number in 0..<4 {
        #expect(try await server.rest("PUT", "/a.json?ns=demo", body: "\"\(text)\(number)\"").status == 200)
      }
      // The server has ended the session whose queue exceeded the limit. So that session no longer counts towards the
      // limit of sessions.
      #expect(try await eventually { try await server.rest("GET", start).status == 200 })
      #expect(try await client.poll() == [.close(after: nil)])
    }
  }

  @Test(
    "a client with too many unanswered requests is disconnected, and its further requests are not executed")
  func tooManyRequests() async throws {
    let gate = GatePolicy()
    var limits = RealtimeEndpointLimits.standard
    limits.outstandingRequests = 8
    try await RealtimeTestServer.run(limits: limits, policy: gate) { server in
      var client = try await LongPollClient(server)
      let segment = (0..<40).map {
        let message = Self.data(#"{"r":\#($0),"a":"p","b":{"p":"/a/\#($0)","d":1}}"#)
        return "&seg\($0)=\($0)&ts\($0)=1&d\($0)=" + LongPollClient.base64(Array(message.utf8))
      }
      let calls = try await client.poll(segment.joined())
      guard calls.count == 2, case .batch(1, let messages) = calls[0] else { throw RawClient.Failure.closed }
      #expect(messages.count == 1 && messages[0].contains("More than 16 requests"), "\(messages)")
      #expect(calls[1] == .close(after: 1))
      gate.open()
      _ = try await server.rest("PUT", "/b.json?ns=demo", body: "1")
      let written = try await server.rest("GET", "/a.json?ns=demo&shallow=true")
      #expect(written.body.split(separator: ",").count <= 16, "\(written.body)")
    }
  }
}
