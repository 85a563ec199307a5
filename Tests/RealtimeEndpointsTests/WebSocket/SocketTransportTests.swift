// Tests the transport below a WebSocket session: frames, limits, invalid input, keep-alives, idle clients and
// draining.

import NIOCore
import RealtimeEngine
import RealtimeModel
import RealtimeWire
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("WebSocket transport of the Realtime Database", .timeLimit(.minutes(10)))
struct SocketTransportTests {
  @Test("messages of many frames are received and sent, and no surrogate pair is split")
  func largeMessages() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      let text = String(repeating: "aé€😀", count: 30_000)
      let message = Array(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/x","d":"\#(text)"}}}"#.utf8)
      let pieces = message.withUnsafeBytes { MessageSplitter.frames(of: $0) } ?? []
      try await socket.send(text: String(pieces.count))
      for piece in pieces { try await socket.sendFrame(1, Array(message[piece])) }
      #expect(try await socket.next() == #"{"r":1,"b":{"s":"ok","d":""}}"#)
      // Sends the same text in one frame, and then in fragments with a ping between them.
      try await socket.send(#"{"r":2,"a":"p","b":{"p":"/y","d":"\#(text)"}}"#)
      #expect(try await socket.next() == #"{"r":2,"b":{"s":"ok","d":""}}"#)
      try await socket.sendFrame(1, Array(message[..<100_000]), fin: false)
      try await socket.sendFrame(9, [7])
      try await socket.sendFrame(0, Array(message[100_000...]))
      #expect(try await socket.readFrame() == RawSocket.Frame(opcode: 10, payload: [7]))
      #expect(try await socket.next() == #"{"r":1,"b":{"s":"ok","d":""}}"#)

      try await socket.send(#"{"r":3,"a":"g","b":{"p":"/x","q":{}}}"#)
      let count = try await socket.readFrame()
      let number = try #require(Int(String(decoding: count.payload, as: UTF8.self)))
      var answer: [UInt8] = []
      for _ in 0..<number {
        let piece = String(decoding: try await socket.readFrame().payload, as: UTF8.self)
        #expect(piece.utf16.count <= 16_384 && !piece.contains("\u{FFFD}"))
        answer += Array(piece.utf8)
      }
      #expect(
        String(decoding: answer, as: UTF8.self) == #"{"t":"d","d":{"r":3,"b":{"s":"ok","d":"\#(text)"}}}"#)
    }
  }

  @Test("any segmentation of the bytes of requests gives the same responses")
  func segmentation() async throws {
    try await RealtimeTestServer.run { server in
      let request = Array(RawSocket.request(server, "v=5&ns=demo").utf8)
      let first = RawSocket.frame(1, Array(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/x","d":1}}}"#.utf8))
      let second = RawSocket.frame(1, Array(#"{"t":"d","d":{"r":2,"a":"g","b":{"p":"/x","q":{}}}}"#.utf8))
      let bytes = request + first + second
      // Splits inside the request's head, right after it, and inside the frames. Bytes in the same packet
      // after the upgrade must not be lost.
      for cut in [
        1, 40, request.count - 1, request.count, request.count + 1, request.count + 3, bytes.count - 1,
      ] {
        let client = try await RawClient.connect(server.port.port)
        try await client.send(Array(bytes[..<cut]))
        try await client.channel.eventLoop.scheduleTask(in: .milliseconds(5)) {}.futureResult.get()
        try await client.send(Array(bytes[cut...]))
        _ = try await client.read(through: "\r\n\r\n")
        var answers: [String] = []
        for _ in 0..<3 {
          answers.append(String(decoding: try await RawSocket.readFrame(client).payload, as: UTF8.self))
        }
        #expect(answers[0].contains(#""t":"h""#))
        #expect(answers[1] == #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}"#, "cut at \(cut)")
        #expect(answers[2] == #"{"t":"d","d":{"r":2,"b":{"s":"ok","d":1}}}"#, "cut at \(cut)")
        await client.close()
      }
    }
  }

  @Test("a lone zero is a keep-alive and gets no response")
  func keepAlive() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.send(text: "0")
      try await socket.play([#"{"r":1,"a":"s","b":{"c":{}}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
    }
  }

  @Test("a write over the size limit gets an error with its request number, and the connection stays open")
  func writeTooBig() async throws {
    var limits = RealtimeEndpointLimits()
    limits.messageBytes = 100_000
    limits.data.socketWriteBytes = 50_000
    try await RealtimeTestServer.run(limits: limits) { server in
      let socket = try await RawSocket.open(server)
      let refused = "Data to write exceeds the maximum size that can be modified with a single request."
      let large = String(repeating: "x", count: 60_000)
      try await socket.play(
        [#"{"r":1,"a":"p","b":{"p":"/x","d":"\#(large)"}}"#],
        expect: [#"{"r":1,"b":{"s":"write_too_big","d":"\#(refused)"}}"#])
      let message = Array(#"{"t":"d","d":{"r":2,"a":"p","b":{"p":"/x","d":"\#(large)\#(large)"}}}"#.utf8)
      let pieces = message.withUnsafeBytes { MessageSplitter.frames(of: $0) } ?? []
      try await socket.send(text: String(pieces.count))
      for piece in pieces { try await socket.sendFrame(1, Array(message[piece])) }
      #expect(try await socket.next() == #"{"r":2,"b":{"s":"write_too_big","d":"\#(refused)"}}"#)
      try await socket.play(
        [#"{"r":3,"a":"p","b":{"p":"/x","d":1}}"#], expect: [#"{"r":3,"b":{"s":"ok","d":""}}"#])
    }
  }

  @Test(
    "a write over the size limit gets an error with its request number, even if the number follows the body")
  func writeTooBigNumberLast() async throws {
    var limits = RealtimeEndpointLimits()
    limits.messageBytes = 100_000
    try await RealtimeTestServer.run(limits: limits) { server in
      let socket = try await RawSocket.open(server)
      // A string and the body contain other numbers, which must not be taken for the request number.
      let large = String(repeating: #"\"r\":7},\"t\":\"d\"}"#, count: 10_000)
      func send(_ text: String) async throws {
        let message = Array(text.utf8)
        let pieces = message.withUnsafeBytes { MessageSplitter.frames(of: $0) } ?? []
        try await socket.send(text: String(pieces.count))
        for piece in pieces { try await socket.sendFrame(1, Array(message[piece])) }
      }
      try await send(#"{"d":{"a":"p","b":{"d":{"r":8,"x":["\#(large)"]},"p":"/x"},"r":2},"t":"d"}"#)
      let refused = "Data to write exceeds the maximum size that can be modified with a single request."
      #expect(try await socket.next() == #"{"r":2,"b":{"s":"write_too_big","d":"\#(refused)"}}"#)
      try await socket.play(
        [#"{"r":3,"a":"p","b":{"p":"/x","d":1}}"#], expect: [#"{"r":3,"b":{"s":"ok","d":""}}"#])
      // The end of this message is missing, so the request's number is unknown.
      try await send(#"{"d":{"a":"p","b":{"d":"\#(large)","r":9}"#)
      #expect(try await socket.text().hasPrefix(#"{"t":"c","d":{"t":"e","d":""#))
      #expect(try await socket.readFrame() == RawSocket.Frame(opcode: 8, payload: [3, 0xF1]))
    }
  }

  @Test(
    "an invalid message closes only its connection, with an error and a close code",
    arguments: [
      ("{\"t\":\"d\"", 1007), ("[]", 1002), ("{\"t\":\"d\",\"d\":{}}", 1002), ("\u{FEFF}{}", 1007),
    ])
  func malformedMessages(text: String, code: Int) async throws {
    try await RealtimeTestServer.run { server in
      let bystander = try await RawSocket.open(server)
      let socket = try await RawSocket.open(server)
      try await socket.send(text: text)
      #expect(try await socket.text().hasPrefix(#"{"t":"c","d":{"t":"e","d":""#))
      let close = try await socket.readFrame()
      #expect(close == RawSocket.Frame(opcode: 8, payload: [UInt8(code >> 8), UInt8(code & 255)]))
      #expect(await socket.client.readToEnd().isEmpty)
      try await bystander.play([#"{"r":1,"a":"s","b":{}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
    }
  }

  @Test("invalid UTF-8, binary frames, invalid framing and reserved codes end the connection")
  func malformedFrames() async throws {
    try await RealtimeTestServer.run { server in
      let cases: [([UInt8], Int)] = [
        (RawSocket.frame(2, [1]), 1003), (RawSocket.frame(0, [1]), 1002), (RawSocket.frame(3, [1]), 1002),
        (RawSocket.frame(1, [0x7B], fin: false) + RawSocket.frame(1, [0x7D]), 1002),
        (RawSocket.frame(9, Array(repeating: 0, count: 126)), 1002),
        (RawSocket.frame(9, [], fin: false), 1002),
        ([0x81, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4], 1009),
        (RawSocket.frame(8, []), 1000), (RawSocket.frame(8, [0x0B, 0xB8, 0x61]), 1000),
        (RawSocket.frame(8, [3]), 1002), (RawSocket.frame(8, [0x03, 0xED]), 1002),
      ]
      for (bytes, code) in cases {
        let socket = try await RawSocket.open(server)
        try await socket.client.send(bytes)
        let close = try await socket.readFrame()
        #expect(
          close.opcode == 8 && close.payload.prefix(2) == [UInt8(code >> 8), UInt8(code & 255)],
          "\(bytes.prefix(3))")
        #expect(await socket.client.readToEnd().isEmpty)
      }
      let socket = try await RawSocket.open(server)
      try await socket.sendFrame(
        1,
        Array(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/x","d":""#.utf8) + [0xC3, 0x28, 0x22]
          + Array("}}}".utf8))
      let answer = try await socket.text()
      #expect(answer.contains(#""s":"failure""#), "\(answer)")
    }
  }

  @Test("a message in the same packet as the upgrade request is answered")
  func messageAfterUpgrade() async throws {
    try await RealtimeTestServer.run { server in
      _ = try await server.engine.database("demo")
      let client = try await RawClient.connect(server.port.port)
      try await client.send(Array(RawSocket.request(server, "v=5&ns=demo").utf8) + RawSocket.frame(9, [7]))
      _ = try await client.read(through: "\r\n\r\n")
      let frames = [try await RawSocket.readFrame(client), try await RawSocket.readFrame(client)]
      #expect(frames.contains(RawSocket.Frame(opcode: 10, payload: [7])), "\(frames)")
      await client.close()
    }
  }

  @Test("an invalid request for a WebSocket is rejected with a reason")
  func badHandshakes() async throws {
    try await RealtimeTestServer.run { server in
      #expect(try await server.rest("GET", "/.ws?v=5&ns=demo").status == 400)
      let headers = [
        "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
      ]
      let old = try await server.rest("GET", "/.ws?v=4&ns=demo", headers: headers)
      #expect(old.status == 400 && old.body.contains("Protocol version 4 is not supported"))
      #expect(try await server.rest("GET", "/.ws?v=5", headers: Array(headers.dropLast())).status == 426)
      #expect(try await server.rest("POST", "/.ws?v=5", headers: headers).status == 400)
    }
  }

  @Test("a WebSocket that continues an unknown long-polling session gets a reset message")
  func unknownTransportSession() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send(RawSocket.request(server, "v=5&ns=demo&s=whatever"))
      _ = try await client.read(through: "\r\n\r\n")
      let frame = try await RawSocket.readFrame(client)
      #expect(
        String(decoding: frame.payload, as: UTF8.self) == #"{"t":"c","d":{"t":"r","d":"\#(server.host)"}}"#)
    }
  }

  @Test("namespaces are distinguished by parameter and by host, and are separate databases")
  func namespaces() async throws {
    try await RealtimeTestServer.run { server in
      let first = try await server.rest("PUT", "/x.json?ns=one", body: "1")
      #expect(first.status == 200)
      #expect(try await server.rest("GET", "/x.json?ns=two").body == "null")
      #expect(try await server.rest("GET", "/x.json?ns=one").body == "1")
      // Clients treat an IP address like a host name, so the first number is the namespace.
      #expect(try await server.rest("PUT", "/x.json", body: "7").status == 200)
      #expect(try await server.rest("GET", "/x.json?ns=127").body == "7")
      #expect(try await server.rest("PUT", "/x.json", body: "8", host: "Two.example.com:9000").status == 200)
      #expect(try await server.rest("GET", "/x.json?ns=two").body == "8")
      #expect(try await server.rest("PUT", "/x.json", body: "9", host: "localhost").status == 200)
      #expect(try await server.rest("GET", "/x.json?ns=default-ns").body == "9")
    }
  }

  @Test("an idle client gets a ping and is then disconnected")
  func liveness() async throws {
    var limits = RealtimeEndpointLimits()
    limits.pingAfter = .milliseconds(200)
    limits.lostAfter = .seconds(3)
    try await RealtimeTestServer.run(limits: limits) { server in
      let socket = try await RawSocket.open(server)
      let start = ContinuousClock.now
      #expect(try await socket.readFrame() == RawSocket.Frame(opcode: 9, payload: []))
      try await socket.sendFrame(10, [])
      #expect(try await socket.readFrame() == RawSocket.Frame(opcode: 9, payload: []))
      #expect(await socket.client.readToEnd().isEmpty)
      #expect(ContinuousClock.now - start >= .seconds(3))
    }
  }

  // The Admin SDK for Java treats a ping as a broken connection. While it receives pushes it sends nothing,
  // so it would look idle.
  @Test("a client that receives pushes gets no ping until the pushes end")
  func livenessOfListeners() async throws {
    var limits = RealtimeEndpointLimits()
    limits.pingAfter = .seconds(3)
    try await RealtimeTestServer.run(limits: limits) { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"q","b":{"p":"/x","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      for number in 1...24 {
        #expect(try await server.rest("PUT", "/x.json?ns=demo", body: "\(number)").status == 200)
        let push = Array(#"{"t":"d","d":{"a":"d","b":{"p":"x","d":\#(number)}}}"#.utf8)
        #expect(try await socket.readFrame() == RawSocket.Frame(opcode: 1, payload: push))
        try await Task.sleep(for: .milliseconds(150))
      }
      #expect(try await socket.readFrame() == RawSocket.Frame(opcode: 9, payload: []))
    }
  }

  @Test("a listener that does not read is disconnected, and other connections continue")
  func slowListener() async throws {
    var limits = RealtimeEndpointLimits()
    limits.data.queuedOutputBytes = 1_000_000
    try await RealtimeTestServer.run(limits: limits) { server in
      let slow = try await RawSocket.open(server)
      try await slow.play(
        [#"{"r":1,"a":"q","b":{"p":"/x","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      try await slow.client.channel.setOption(.autoRead, value: false).get()
      let writer = try await RawSocket.open(server)
      let text = String(repeating: "x", count: 500_000)
      var number = 0
      while server.port.connectionCount > 1 {
        number += 1
        try await writer.play(
          [#"{"r":\#(number),"a":"p","b":{"p":"/x/\#(number)","d":"\#(number)\#(text)"}}"#],
          expect: [#"{"r":\#(number),"b":{"s":"ok","d":""}}"#])
      }
      #expect(number < 200)
    }
  }

  @Test("draining closes sockets after their responses")
  func draining() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"p","b":{"p":"/x","d":1}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      async let drained: Void = server.port.drain(grace: .seconds(60))
      let close = try await socket.readFrame()
      #expect(close.opcode == 8 && close.payload.prefix(2) == [0x03, 0xE9])
      await drained
      #expect(server.port.connectionCount == 0)
    }
  }
}
