// Tests listens whose value or change is too large for a WebSocket message. A message is sent in frames, and
// clients accept a limited number of them. Only the affected listens end, and the connection stays open.

import NIOCore
import RandomModels
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import RealtimeEndpoints

@Suite("Listens too large for a socket", .timeLimit(.minutes(5)))
struct LargeListenTests {
  /// Limits a message to four frames of 16,384 characters.
  private static var limits: RealtimeEndpointLimits {
    var limits = RealtimeEndpointLimits.standard
    limits.socketFrames = 4
    return limits
  }

  private static let large = "\"" + String(repeating: "x", count: 5 * 16_384) + "\""
  private static let tooBig = #""b":{"s":"too_big","d":"\#(RealtimeError.tooBig.message)"}"#

  private static func put(_ server: RealtimeTestServer, _ path: String, _ value: String) async throws {
    let answer = try await server.rest("PUT", "/\(path).json?ns=demo&print=silent", body: value)
    #expect(answer.status == 204, "\(answer)")
  }

  @Test(
    "a listen to a value too large for a message gets an error; the connection's other requests succeed")
  func tooLargeFirstValue() async throws {
    try await RealtimeTestServer.run(limits: Self.limits) { server in
      try await Self.put(server, "big/x", Self.large)
      let socket = try await RawSocket.open(server)
      let query = #""q":{"i":".key","sp":"a"}"#
      try await socket.play(
        [
          #"{"r":1,"a":"q","b":{"p":"/small","h":""}}"#, #"{"r":2,"a":"q","b":{"p":"/big","h":""}}"#,
          #"{"r":3,"a":"q","b":{"p":"/big",\#(query),"t":1,"h":""}}"#, #"{"r":4,"a":"g","b":{"p":"/big"}}"#,
          #"{"r":5,"a":"p","b":{"p":"/small","d":1}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{}}}"#, #"{"r":2,\#(Self.tooBig)}"#, #"{"r":3,\#(Self.tooBig)}"#,
          #"{"r":4,\#(Self.tooBig)}"#, #"{"a":"d","b":{"p":"small","d":1}}"#,
          #"{"r":5,"b":{"s":"ok","d":""}}"#,
        ])
      // The rejected listen receives no push. A listen after the value has become smaller succeeds.
      try await Self.put(server, "big", "7")
      try await socket.play(
        [
          #"{"r":6,"a":"p","b":{"p":"/big","d":8}}"#, #"{"r":7,"a":"q","b":{"p":"/big","h":""}}"#,
          #"{"r":8,"a":"p","b":{"p":"/big","d":9}}"#,
        ],
        expect: [
          #"{"r":6,"b":{"s":"ok","d":""}}"#, #"{"a":"d","b":{"p":"big","d":8}}"#,
          #"{"r":7,"b":{"s":"ok","d":{}}}"#, #"{"a":"d","b":{"p":"big","d":9}}"#,
          #"{"r":8,"b":{"s":"ok","d":""}}"#,
        ])
    }
  }

  @Test("a filtered listen without an index is rejected if its complete location is too large for a message")
  func unindexed() async throws {
    try await RealtimeTestServer.run(limits: Self.limits) { server in
      try await Self.put(server, "big", "{\"a\":{\"n\":1,\"x\":\(Self.large)},\"b\":{\"n\":2}}")
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"q","b":{"p":"/big","q":{"i":"n","sp":2},"t":1,"h":""}}"#,
          #"{"r":2,"a":"p","b":{"p":"/big/c","d":{"n":3}}}"#,
        ], expect: [#"{"r":1,\#(Self.tooBig)}"#, #"{"r":2,"b":{"s":"ok","d":""}}"#])
    }
  }

  @Test("a change too large for a message ends the listens that it affects, and no others")
  func tooLargeChange() async throws {
    try await RealtimeTestServer.run(limits: Self.limits) { server in
      let socket = try await RawSocket.open(server)
      let query = #"{"i":".key", "sp":"a"}"#
      try await socket.play(
        [
          #"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#,
          #"{"r":2,"a":"q","b":{"p":"/a","q":\#(query),"t":1,"h":""}}"#,
          #"{"r":3,"a":"q","b":{"p":"/a/other","h":""}}"#, #"{"r":4,"a":"q","b":{"p":"/b","h":""}}"#,
          #"{"r":5,"a":"q","b":{"p":"/b","q":\#(query),"t":2,"h":""}}"#,
        ], expect: (1...5).map { #"{"r":\#($0),"b":{"s":"ok","d":{}}}"# })
      // The writer sends the large change, and directly after it changes for the listens that this change ends and for
      // other listens.
      let writer = try await RawSocket.open(server)
      try await writer.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/a/x","d":\#(Self.large)}}"#,
          #"{"r":2,"a":"p","b":{"p":"/a/other","d":2}}"#, #"{"r":3,"a":"p","b":{"p":"/b/y","d":3}}"#,
        ], expect: (1...3).map { #"{"r":\#($0),"b":{"s":"ok","d":""}}"# })
      var received: [String] = []
      for _ in 0..<5 { received.append(try await socket.next()) }
      #expect(
        Set(received) == [
          #"{"a":"c","b":{"p":"a"}}"#, #"{"a":"c","b":{"p":"a","q":[\#(query)]}}"#,
          #"{"a":"d","b":{"p":"a/other","d":2}}"#, #"{"a":"d","b":{"p":"b/y","d":3}}"#,
          #"{"a":"d","b":{"p":"b","d":{"y":3},"t":2}}"#,
        ], "\(received.map { $0.prefix(100) })")
      // The client listens again. The server rejects the listen until the value is smaller.
      try await socket.play(
        [
          #"{"r":6,"a":"q","b":{"p":"/a","h":""}}"#, #"{"r":7,"a":"p","b":{"p":"/a/x","d":null}}"#,
          #"{"r":8,"a":"q","b":{"p":"/a","h":""}}"#, #"{"r":9,"a":"p","b":{"p":"/a/x","d":1}}"#,
        ],
        expect: [
          #"{"r":6,\#(Self.tooBig)}"#, #"{"r":7,"b":{"s":"ok","d":""}}"#,
          #"{"a":"d","b":{"p":"a","d":{"other":2}}}"#, #"{"r":8,"b":{"s":"ok","d":{}}}"#,
          #"{"a":"d","b":{"p":"a/x","d":1}}"#, #"{"r":9,"b":{"s":"ok","d":""}}"#,
        ])
    }
  }

  @Test("long polling has no limit of frames; the limit applies once the session has moved to a WebSocket")
  func movedToSocket() async throws {
    try await RealtimeTestServer.run(limits: Self.limits) { server in
      try await Self.put(server, "big", Self.large)
      var client = try await LongPollClient(server)
      let received = try await client.send(
        [
          LongPollTests.data(#"{"r":1,"a":"q","b":{"p":"/a","h":""}}"#),
          LongPollTests.data(#"{"r":2,"a":"g","b":{"p":"/big"}}"#),
        ], awaiting: 2)
      #expect(received == [LongPollTests.ok(1, "{}"), LongPollTests.ok(2, Self.large)])
      let (socket, _) = try await LongPollUpgradeTests.upgrade(server, client.session)
      _ = try await client.poll(try #require(client.segments(of: LongPollUpgradeTests.end).first))
      try await Self.put(server, "a/x", Self.large)
      #expect(
        try await LongPollUpgradeTests.text(socket) == LongPollTests.data(#"{"a":"c","b":{"p":"a"}}"#))
      let requests = [
        #"{"r":3,"a":"q","b":{"p":"/a","h":""}}"#, #"{"r":4,"a":"g","b":{"p":"/big"}}"#,
        #"{"r":5,"a":"p","b":{"p":"/a/x","d":1}}"#, #"{"r":6,"a":"q","b":{"p":"/a","h":""}}"#,
      ]
      for request in requests {
        try await LongPollUpgradeTests.send(socket, LongPollTests.data(request))
      }
      let answers = [
        #"{"r":3,\#(Self.tooBig)}"#, #"{"r":4,\#(Self.tooBig)}"#, #"{"r":5,"b":{"s":"ok","d":""}}"#,
        #"{"a":"d","b":{"p":"a","d":{"x":1}}}"#, #"{"r":6,"b":{"s":"ok","d":{}}}"#,
      ]
      for answer in answers {
        #expect(try await LongPollUpgradeTests.text(socket) == LongPollTests.data(answer))
      }
      await socket.close()
    }
  }

  @Test(
    "a listen that restarts before the engine has confirmed its earlier end gets pushes until that confirmation"
  )
  func restartedListen() {
    var listens = SessionListens()
    let (a, b) = (SessionListens.Name(path: "a", tag: nil), SessionListens.Name(path: "b", tag: nil))
    for name in [a, b] { _ = listens.outcome(of: .listen(name, queryText: nil), .listening(warnings: [])) }
    let push = RealtimePush("a/x", .set(.leaf(.int(1))))
    let received = listens.remove(notifiedBy: push)
    #expect(received.map(\.name) == [a])
    listens.willEnd()
    #expect(!listens.accepts(push))
    #expect(listens.accepts(RealtimePush("b/x", .set(.leaf(.int(1))))))
    #expect(listens.accepts(RealtimePush("a", .set(.leaf(.int(1))), isFirst: true)))
    _ = listens.outcome(of: .listen(a, queryText: nil), .listening(warnings: []))
    #expect(listens.accepts(push))
    guard case .cancel(a, queryText: nil) = listens.outcome(of: .end(a), .done) else {
      Issue.record("the client is not notified of the end")
      return
    }
    let (ended, active) = (listens.remove(a), listens.remove(b))
    #expect(ended == nil && active != nil)
  }

  @Test("the listens found for a change equal those found by comparing every path with every listen")
  func affectedListens() {
    var random = SeededGenerator(seed: 23)
    func path(_ longest: Int) -> Path {
      Path(
        (0..<random.below(longest + 1)).map { _ in
          ChildKey(["a", "b", "1", "2"][random.below(4)])
        })
    }
    for _ in 0..<2_000 {
      var listens = SessionListens()
      let names = Set(
        (0..<6).map { _ in SessionListens.Name(path: path(4), tag: Bool.random(using: &random) ? 1 : nil) })
      for name in names {
        _ = listens.outcome(of: .listen(name, queryText: nil), .listening(warnings: []))
      }
      let common = path(2)
      let changes = (0..<3).map { _ in
        let location = path(3)
        return (
          path: Bool.random(using: &random) ? location.child(.priority) : location, value: Node.leaf(.int(1))
        )
      }
      let tag: Int64? = Bool.random(using: &random) ? 1 : nil
      let push = RealtimePush(common, .merge(changes), tag: tag)
      let affectedListens = names.filter { name in
        name.tag == tag
          && changes.contains { change in
            let changed = common.appending(change.path).dataPath
            return changed.contains(name.path) || name.path.contains(changed)
          }
      }
      #expect(
        Set(listens.remove(notifiedBy: push).map(\.name)) == affectedListens, "\(names) \(common) \(changes)")
    }
  }
}
