// Tests listeners that stop reading from their connection. A listener that reads again receives the latest values. A
// listener that does not read never blocks another client.

import Access
import NIOCore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Listeners that do not read", .timeLimit(.minutes(10)))
struct SlowReaderTests {
  private var limits: RealtimeEndpointLimits {
    var limits = RealtimeEndpointLimits()
    limits.data.queuedOutputBytes = 1 << 20
    return limits
  }

  private let padding = String(repeating: "x", count: 16 << 10)
  private let rounds = 1_500

  /// Applies a message or event to a value: a replacement or a merge at a path.
  private func apply(_ action: String, _ path: String, _ data: Node, to node: Node) -> Node {
    guard action == "m" || action == "patch" else { return node.setting(Path(path), to: data) }
    var changes: [(Path, Node)] = []
    data.forEachChild { key, value in
      changes.append((Path("\(path)/\(key.text)"), value))
      return true
    }
    return node.merging(changes)
  }

  private func text(_ node: Node) -> String {
    if case .string(let text)? = node.leafValue { text } else { "" }
  }

  /// Writes ten values repeatedly, in total more than any buffer holds. Checks that a listener that reads
  /// receives each write immediately.
  private func write(_ server: RealtimeTestServer) async throws -> Node {
    let database = try await server.engine.database("demo")
    let reader = try await RawSocket.open(server)
    try await reader.play(
      [#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
    for round in 0..<rounds {
      let value = "\(round)\(padding)"
      _ = try await database.set(Path("a/\(round % 10)"), to: .leaf(.string(value)), as: .nobody)
      #expect(try await reader.next() == #"{"a":"d","b":{"p":"a/\#(round % 10)","d":"\#(value)"}}"#)
    }
    await reader.close()
    return try await database.get("a", as: .nobody)
  }

  @Test("a slow WebSocket receives the latest values instead of every change, and responses in order")
  func socket() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      let slow = try await RawSocket.open(server)
      try await slow.play(
        [#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      try await slow.client.channel.setOption(.autoRead, value: false).get()
      let expected = try await write(server)
      try await slow.send(#"{"r":2,"a":"p","b":{"p":"/a/10","d":"mine"}}"#)
      try await slow.client.channel.setOption(.autoRead, value: true).get()
      var node = Node.empty
      var messages = 0
      while true {
        let message = try Node(json: Array(try await slow.next().utf8), .read)
        if message.child("r") == .leaf(.int(2)) { break }
        messages += 1
        let body = message.child("b")
        node = apply(text(message.child("a")), text(body.child("p")), body.child("d"), to: node)
      }
      // The push of the client's own write precedes the response to it.
      #expect(node == Node.empty.setting("a", to: expected).setting("a/10", to: .leaf(.string("mine"))))
      #expect(messages < rounds / 2, "\(messages) messages")
    }
  }

  @Test("on a slow WebSocket, responses that the endpoint gives without the engine follow earlier pushes")
  func ownAnswers() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      let slow = try await RawSocket.open(server)
      try await slow.play(
        [#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      try await slow.client.channel.setOption(.autoRead, value: false).get()
      let expected = try await write(server)
      try await slow.send(#"{"r":2,"a":"s","b":{"c":{"sdk.test.1":1}}}"#)
      try await slow.send(#"{"r":3,"a":"s","b":{"c":{}}}"#)
      try await slow.client.channel.setOption(.autoRead, value: true).get()
      var node = Node.empty
      for request in [Int64(2), 3] {
        while true {
          let message = try Node(json: Array(try await slow.next().utf8), .read)
          if message.child("r") == .leaf(.int(request)) { break }
          let body = message.child("b")
          node = apply(text(message.child("a")), text(body.child("p")), body.child("d"), to: node)
        }
        #expect(node == Node.empty.setting("a", to: expected))
      }
    }
  }

  @Test("a slow event stream receives the latest values instead of every change")
  func eventStream() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send("GET /a.json?ns=demo HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n")
      _ = try await client.read(through: "null}\n\n")
      try await client.channel.setOption(.autoRead, value: false).get()
      let expected = try await write(server)
      try await client.channel.setOption(.autoRead, value: true).get()
      var node = Node.empty
      var events = 0
      while node != expected {
        _ = try await client.read(through: "event: ")
        let action = String(try await client.read(through: "\n").dropLast())
        _ = try await client.read(through: "data: ")
        let data = try Node(json: Array(try await client.read(through: "\n").utf8), .read)
        events += 1
        node = apply(action, text(data.child("path")), data.child("data"), to: node)
      }
      #expect(events < rounds / 2, "\(events) events")
    }
  }

  @Test("a client is disconnected if its values alone exceed the queue limit")
  func disconnected() async throws {
    var limits = limits
    // Keeps the server from disconnecting the client because it is idle.
    limits.lostAfter = .hours(1)
    try await RealtimeTestServer.run(limits: limits) { server in
      let slow = try await RawSocket.open(server)
      try await slow.play(
        [#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      try await slow.client.channel.setOption(.autoRead, value: false).get()
      let database = try await server.engine.database("demo")
      for round in 0..<rounds {
        _ = try await database.set(Path("a/\(round)"), to: .leaf(.string(padding)), as: .nobody)
      }
      // Waits for the disconnection before the client reads again. Otherwise it could receive everything.
      #expect(try await eventually { server.port.connectionCount == 0 })
      try await slow.client.channel.setOption(.autoRead, value: true).get()
      #expect(await slow.client.readToEnd().count < rounds * padding.utf8.count)
    }
  }

  @Test("a long message may take longer than the idle limit while the client makes progress")
  func slowDownload() async throws {
    var limits = RealtimeEndpointLimits()
    // These clients do not answer pings, so they count as idle unless they read.
    limits.pingAfter = .seconds(7)
    limits.lostAfter = .seconds(8)
    try await RealtimeTestServer.run(limits: limits) { server in
      let database = try await server.engine.database("demo")
      let part = String(repeating: "x", count: 4 << 20)
      for number in 0..<6 {
        _ = try await database.set(Path("a/\(number)"), to: .leaf(.string(part)), as: .nobody)
      }
      let slow = try await RawSocket.open(server)
      let idle = try await RawSocket.open(server)
      for socket in [slow, idle] {
        try await socket.client.channel.setOption(.autoRead, value: false).get()
        try await socket.send(#"{"r":1,"a":"g","b":{"p":"/a"}}"#)
      }
      // The server disconnects the client that reads nothing, but not the slow one.
      let start = ContinuousClock.now
      while server.port.connectionCount > 1, ContinuousClock.now - start < .seconds(40) {
        try await Task.sleep(for: .milliseconds(40))
        slow.client.channel.read()
      }
      #expect(server.port.connectionCount == 1)
      #expect(slow.client.channel.isActive)
      await slow.close()
    }
  }
}
