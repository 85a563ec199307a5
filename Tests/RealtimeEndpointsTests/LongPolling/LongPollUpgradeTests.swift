// Tests moving a long-polling session to a WebSocket: the client opens the socket, then sends its last
// message by polling.

import NIOCore
import RandomModels
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Long polling's move to a WebSocket", .timeLimit(.minutes(10)))
struct LongPollUpgradeTests {
  static let end = #"{"t":"c","d":{"t":"n","d":{}}}"#

  /// Opens a WebSocket to continue a session.
  static func upgrade(_ server: RealtimeTestServer, _ session: String) async throws -> (RawClient, String) {
    let client = try await RawClient.connect(server.port.port)
    try await client.send(RawSocket.request(server, "v=5&ns=demo&s=\(session)"))
    _ = try await client.read(through: "\r\n\r\n")
    return (client, try await text(client))
  }

  static func text(_ client: RawClient) async throws -> String {
    String(decoding: try await RawSocket.readFrame(client).payload, as: UTF8.self)
  }

  static func send(_ client: RawClient, _ text: String) async throws {
    try await client.send(RawSocket.frame(1, Array(text.utf8)))
  }

  @Test(
    "messages keep their order in both directions, even if messages on the WebSocket arrive first",
    arguments: 1...6)
  func order(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    var limits = RealtimeEndpointLimits.standard
    limits.longPollHold = .milliseconds(300)
    try await RealtimeTestServer.run(limits: limits) { server in
      var client = try await LongPollClient(server)
      var received = try await client.send(
        [LongPollTests.data(#"{"r":0,"a":"q","b":{"p":"/log","h":""}}"#)], awaiting: 1)
      let (socket, first) = try await Self.upgrade(server, client.session)
      #expect(first == #"{"t":"c","d":{"t":"a","d":{}}}"#)
      for _ in 0..<2 {
        try await Self.send(socket, #"{"t":"c","d":{"t":"p","d":{}}}"#)
        #expect(try await Self.text(socket).contains(#""t":"o""#))
      }
      let before = Int.random(in: 1...8, using: &random)
      let after = Int.random(in: 1...8, using: &random)
      func write(_ number: Int) -> String {
        LongPollTests.data(#"{"r":\#(number),"a":"p","b":{"p":"/log","d":\#(number)}}"#)
      }
      // The client switches to the WebSocket while segments of earlier messages are in flight.
      let segments = (1...before).flatMap { client.segments(of: write($0)) } + client.segments(of: Self.end)
      try await Self.send(socket, #"{"t":"c","d":{"t":"a","d":{}}}"#)
      for number in before + 1...before + after { try await Self.send(socket, write(number)) }
      // Sends two polls at a time, which may arrive in any order.
      var calls: [ScriptCall] = []
      let target = "/.lp?id=\(client.id)&pw=\(client.password)&ns=demo&ser="
      try await withThrowingTaskGroup(of: [ScriptCall].self) { group in
        var inFlightCount = 0
        for (serial, segment) in segments.enumerated() {
          if inFlightCount == 2, let done = try await group.next() {
            calls += done
          } else {
            inFlightCount += 1
          }
          group.addTask { try await LongPollClient.get(server, target + String(1000 + serial) + segment) }
        }
        while let done = try await group.next() { calls += done }
      }
      var batches: [Int: [String]] = [:]
      for case .batch(let number, let messages) in calls { batches[number] = messages }
      let numbers = batches.keys.sorted()
      #expect(
        numbers == Array((numbers.first ?? 0)..<(numbers.first ?? 0) + numbers.count),
        "batches follow each other")
      #expect(calls.contains(.close(after: numbers.last)))
      received += numbers.flatMap { batches[$0] ?? [] }
      #expect(received.last == Self.end, "the last batch announces that nothing follows")
      received.removeLast()
      // Each write causes a push and an acknowledgement.
      while received.count < 1 + 2 * (before + after) { received.append(try await Self.text(socket)) }
      let pushes = received.filter { $0.contains(#""a":"d""#) }
      #expect(
        pushes == (1...before + after).map { LongPollTests.data(#"{"a":"d","b":{"p":"log","d":\#($0)}}"#) })
      #expect(
        received.filter { $0.contains(#""r":"#) } == [LongPollTests.ok(0, "{}")]
          + (1...before + after).map { LongPollTests.ok($0) })
      await socket.close()
    }
  }

  @Test("onDisconnect operations do not run on the move to a WebSocket, but when the WebSocket closes")
  func onDisconnect() async throws {
    try await RealtimeTestServer.run { server in
      let watcher = try await RawSocket.open(server)
      try await watcher.play(
        [#"{"r":1,"a":"q","b":{"p":"/s","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      var client = try await LongPollClient(server)
      _ = try await client.send(
        [LongPollTests.data(#"{"r":1,"a":"o","b":{"p":"/s","d":"gone"}}"#)], awaiting: 1)
      let (socket, _) = try await Self.upgrade(server, client.session)
      let calls = try await client.poll(try #require(client.segments(of: Self.end).first))
      #expect(calls == [.batch(2, [Self.end]), .close(after: 2)])
      _ = try await LongPollClient.get(server, "/.lp?disconn=t&id=\(client.id)&pw=\(client.password)")
      try await Self.send(socket, LongPollTests.data(#"{"r":2,"a":"p","b":{"p":"/s","d":"here"}}"#))
      #expect(try await Self.text(socket) == LongPollTests.ok(2))
      #expect(try await watcher.next() == #"{"a":"d","b":{"p":"s","d":"here"}}"#)
      await socket.close()
      #expect(try await watcher.next() == #"{"a":"d","b":{"p":"s","d":"gone"}}"#)
    }
  }

  @Test(
    "a session continues polling if its WebSocket closes before the move; a second WebSocket is rejected"
  )
  func closedBeforeMove() async throws {
    try await RealtimeTestServer.run { server in
      var client = try await LongPollClient(server)
      let (first, accepted) = try await Self.upgrade(server, client.session)
      #expect(accepted.contains(#""t":"a""#))
      let (second, refused) = try await Self.upgrade(server, client.session)
      #expect(refused.contains(#""t":"r""#))
      // The end of the rejected WebSocket does not end the session.
      await second.close()
      let (third, refusedToo) = try await Self.upgrade(server, client.session)
      #expect(refusedToo.contains(#""t":"r""#))
      await first.close()
      await third.close()
      let received = try await client.send(
        [LongPollTests.data(#"{"r":1,"a":"p","b":{"p":"/a","d":1}}"#)], awaiting: 1)
      #expect(received == [LongPollTests.ok(1)])
    }
  }
}
