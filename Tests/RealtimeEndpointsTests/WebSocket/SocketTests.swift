// Tests sessions over a WebSocket: the hello, requests and their responses, authentication, listens and
// onDisconnect.

import Access
import NIOCore
import RealtimeEngine
import RealtimeModel
import RealtimeWire
import Testing

@testable import EndpointFixture
@testable import RealtimeEndpoints

@Suite("Realtime Database over a WebSocket", .timeLimit(.minutes(10)))
struct SocketTests {
  @Test("the first message is the hello, with the host that the client requested and a random session ID")
  func hello() async throws {
    try await RealtimeTestServer.run { server in
      let a = try await RawSocket.open(server)
      let b = try await RawSocket.open(server)
      #expect(a.hello.version == "5")
      #expect(a.hello.host == server.host)
      #expect(abs(a.hello.timestamp - RealtimeEndpoint.systemTime()) < 60_000)
      #expect(a.session != b.session && a.session.utf8.count >= 20 && a.session.utf8.count <= 40)
    }
  }

  @Test("the pong that answers a ping has a payload")
  func ping() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.send(text: #"{"t":"c","d":{"t":"p","d":{}}}"#)
      #expect(try await socket.text() == #"{"t":"c","d":{"t":"o","d":{}}}"#)
    }
  }

  @Test("after unlisten no push follows")
  func unlisten() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"q","b":{"p":"/x","h":""}}"#, #"{"r":2,"a":"n","b":{"p":"/x"}}"#,
          #"{"r":3,"a":"p","b":{"p":"/x","d":1}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{}}}"#, #"{"r":2,"b":{"s":"ok","d":""}}"#,
          #"{"r":3,"b":{"s":"ok","d":""}}"#,
        ])
    }
  }

  @Test("responses that the endpoint gives without the engine keep their order among the engine's responses")
  func order() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      var requests: [String] = []
      var answers: [String] = []
      for index in 0..<60 {
        let number = index * 3
        requests += [
          #"{"r":\#(number),"a":"p","b":{"p":"/k\#(index)","d":\#(index)}}"#,
          #"{"r":\#(number + 1),"a":"s","b":{"c":{"x":1}}}"#, #"{"r":\#(number + 2),"a":"what","b":{}}"#,
        ]
        answers += [
          #"{"r":\#(number),"b":{"s":"ok","d":""}}"#, #"{"r":\#(number + 1),"b":{"s":"ok","d":""}}"#,
          #"{"r":\#(number + 2),"b":{"s":"failure","d":"Unknown action"}}"#,
        ]
      }
      try await socket.play(requests, expect: answers)
    }
  }

  @Test("an invalid request is answered and the connection stays open")
  func invalidRequests() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/a","d":{"b.c":1}}}"#, #"{"r":2,"a":"p","b":{"p":"/a#","d":1}}"#,
          #"{"r":3,"a":"m","b":{"p":"/","d":{"a":1,"a/b":2}}}"#, #"{"r":4,"a":"p","b":{"p":"/a","d":1}}"#,
        ], expect: [])
      #expect(
        try await socket.next()
          == #"{"r":1,"b":{"s":"failure","d":"Invalid data; couldn't parse key beginning at 1:48. Key value can't be empty or contain $ # [ ] / or ."}}"#
      )
      #expect(
        try await socket.next() == #"{"r":2,"b":{"s":"failure","d":"Invalid path: Invalid token in path"}}"#)
      #expect(try await socket.next().hasPrefix(#"{"r":3,"b":{"s":"failure""#))
      #expect(try await socket.next() == #"{"r":4,"b":{"s":"ok","d":""}}"#)
    }
  }

  @Test("authentication applies to the next request, even if the client does not wait for the response")
  func pipelinedAuthentication() async throws {
    try await RealtimeTestServer.run(policy: LockedPolicy()) { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"g","b":{"p":"/x","q":{}}}"#, #"{"r":2,"a":"gauth","b":{"cred":"owner"}}"#,
          #"{"r":3,"a":"g","b":{"p":"/x","q":{}}}"#, #"{"r":4,"a":"unauth","b":{}}"#,
          #"{"r":5,"a":"q","b":{"p":"/x","h":""}}"#, #"{"r":6,"a":"auth","b":{"cred":"nonsense"}}"#,
          #"{"r":7,"a":"auth","b":{"cred":"owner","noauth":true}}"#,
          #"{"r":8,"a":"g","b":{"p":"/x","q":{}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"permission_denied","d":"Permission denied"}}"#,
          #"{"r":2,"b":{"s":"ok","d":{"auth":null,"expires":0}}}"#, #"{"r":3,"b":{"s":"ok","d":null}}"#,
          #"{"r":4,"b":{"s":"ok","d":"unauthenticated"}}"#,
          #"{"r":5,"b":{"s":"permission_denied","d":"Permission denied"}}"#,
          #"{"r":6,"b":{"s":"invalid_token","d":"Could not parse auth token."}}"#,
          #"{"r":7,"b":{"s":"ok","d":{"auth":null,"expires":0}}}"#,
          #"{"r":8,"b":{"s":"permission_denied","d":"Permission denied"}}"#,
        ])
    }
  }

  @Test("unsigned tokens are accepted by an emulator and rejected otherwise")
  func unsignedTokens() async throws {
    // {"alg":"none"} . {"sub":"u1","exp":99} . nothing
    let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSIsImV4cCI6OTl9."
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"auth","b":{"cred":"\#(token)"}}"#],
        expect: [#"{"r":1,"b":{"s":"ok","d":{"auth":{"exp":99,"sub":"u1"},"expires":99}}}"#])
    }
    try await RealtimeTestServer.run(policy: LockedPolicy(), authentication: .rejectAll) { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"auth","b":{"cred":"\#(token)"}}"#, #"{"r":2,"a":"gauth","b":{"cred":"owner"}}"#],
        expect: [
          #"{"r":1,"b":{"s":"invalid_token","d":"Could not parse auth token."}}"#,
          #"{"r":2,"b":{"s":"invalid_token","d":"Could not parse auth token."}}"#,
        ])
    }
  }

  @Test(
    "a query of more than 64 KiB of JSON is rejected, and the connection stays open")
  func queryTextBound() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      func listen(_ number: Int, length: Int) -> String {
        let key = String(repeating: "k", count: length - #"{"sp":"","i":".value"}"#.utf8.count)
        return #"{"t":"d","d":{"r":"# + "\(number)" + #","a":"q","b":{"p":"/x","q":{"sp":""# + key
          + #"","i":".value"},"t":"# + "\(number)" + #","h":""}}}"#
      }
      try await socket.send(text: listen(1, length: 64 << 10))
      #expect(try await socket.next().hasPrefix(#"{"r":1,"b":{"s":"ok""#))
      try await socket.send(text: listen(2, length: (64 << 10) + 1))
      let refused = try await socket.next()
      #expect(refused.hasPrefix(#"{"r":2,"b":{"s":"failure""#) && refused.contains("65536 bytes"))
      try await socket.play(
        [#"{"r":3,"a":"p","b":{"p":"/y","d":1}}"#], expect: [#"{"r":3,"b":{"s":"ok","d":""}}"#])
    }
  }

  @Test(
    "a listen without a hash also receives an empty value; a listen with the hash of the empty value does not"
  )
  func noHash() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      let query = #""q":{"i":".key","l":2,"vf":"l"}"#
      try await socket.play(
        [
          #"{"r":1,"a":"q","b":{"p":"/rooms/1"}}"#, #"{"r":2,"a":"q","b":{"p":"/rooms/2",\#(query),"t":1}}"#,
          #"{"r":3,"a":"q","b":{"p":"/rooms/3","h":null}}"#, #"{"r":4,"a":"q","b":{"p":"/rooms/4","h":""}}"#,
          #"{"r":5,"a":"p","b":{"p":"/rooms/5","d":{"a":1}}}"#,
          #"{"r":6,"a":"q","b":{"p":"/rooms/5",\#(query),"t":2}}"#,
        ],
        expect: [
          #"{"a":"d","b":{"p":"rooms/1","d":null}}"#, #"{"r":1,"b":{"s":"ok","d":{}}}"#,
          #"{"a":"d","b":{"p":"rooms/2","d":null,"t":1}}"#, #"{"r":2,"b":{"s":"ok","d":{}}}"#,
          #"{"a":"d","b":{"p":"rooms/3","d":null}}"#, #"{"r":3,"b":{"s":"ok","d":{}}}"#,
          #"{"r":4,"b":{"s":"ok","d":{}}}"#, #"{"r":5,"b":{"s":"ok","d":""}}"#,
          #"{"a":"d","b":{"p":"rooms/5","d":{"a":1},"t":2}}"#, #"{"r":6,"b":{"s":"ok","d":{}}}"#,
        ])
    }
  }

  @Test(
    "rejected filtered listens leave no state, and a revocation repeats the query as the client sent it")
  func refusedQueries() async throws {
    var limits = RealtimeEndpointLimits.standard
    limits.data.listensPerConnection = 3
    try await RealtimeTestServer.run(limits: limits, policy: LockedPolicy()) { server in
      let socket = try await RawSocket.open(server)
      func listen(_ number: Int) -> String {
        #"{"r":\#(number),"a":"q","b":{"p":"/x","q":{"i":".key", "l":\#(number)},"t":\#(number),"h":""}}"#
      }
      try await socket.play(
        (1...5).map(listen),
        expect: (1...5).map {
          #"{"r":\#($0),"b":{"s":"permission_denied","d":"Permission denied"}}"#
        })
      try await socket.play(
        [
          #"{"r":6,"a":"gauth","b":{"cred":"owner"}}"#, listen(7), listen(8), listen(9),
          #"{"r":10,"a":"n","b":{"p":"/x","q":{"i":".key", "l":8},"t":8}}"#,
          #"{"r":11,"a":"n","b":{"p":"/x","q":{"i":".key", "l":9},"t":9}}"#,
          #"{"r":12,"a":"unauth","b":{}}"#,
        ],
        expect: [
          #"{"r":6,"b":{"s":"ok","d":{"auth":null,"expires":0}}}"#, #"{"r":7,"b":{"s":"ok","d":{}}}"#,
          #"{"r":8,"b":{"s":"ok","d":{}}}"#, #"{"r":9,"b":{"s":"ok","d":{}}}"#,
          #"{"r":10,"b":{"s":"ok","d":""}}"#, #"{"r":11,"b":{"s":"ok","d":""}}"#,
          #"{"a":"c","b":{"p":"x","q":[{"i":".key", "l":7}]}}"#,
          #"{"r":12,"b":{"s":"ok","d":"unauthenticated"}}"#,
        ])
    }
  }

  @Test("an update with an empty key is rejected, also as an onDisconnect operation")
  func emptyUpdateKeys() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"p","b":{"p":"/a","d":{"x":1}}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      for (number, request) in [
        #""a":"m","b":{"p":"/a","d":{"":1}}"#, #""a":"m","b":{"p":"/","d":{"b":2,"//":null}}"#,
        #""a":"om","b":{"p":"/a","d":{"":1}}"#, #""a":"om","b":{"d":{"/":null},"p":"/"}"#,
      ].enumerated() {
        try await socket.send(#"{"r":\#(number + 2),\#(request)}"#)
        let answer = try await socket.next()
        #expect(
          answer.hasPrefix(#"{"r":\#(number + 2),"b":{"s":"failure","d":"Invalid data; couldn't parse key"#))
        #expect(answer.contains("Key value can't be empty"), "\(answer)")
      }
      await socket.close()
      let reader = try await RawSocket.open(server, "v=5&ns=demo&ls=\(socket.session)")
      try await reader.play(
        [#"{"r":1,"a":"g","b":{"p":"/","q":{}}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{"a":{"x":1}}}}"#])
    }
  }

  @Test("onDisconnect operations run when the connection ends, unless they are cancelled")
  func onDisconnect() async throws {
    try await RealtimeTestServer.run { server in
      let watcher = try await RawSocket.open(server)
      try await watcher.play(
        [#"{"r":1,"a":"q","b":{"p":"/s","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      let disconnecting = try await RawSocket.open(server)
      try await disconnecting.play(
        [
          #"{"r":1,"a":"o","b":{"p":"/s/a","d":1}}"#, #"{"r":2,"a":"o","b":{"p":"/s/b","d":1}}"#,
          #"{"r":3,"a":"oc","b":{"p":"/s/a","d":null}}"#, #"{"r":4,"a":"om","b":{"p":"/s","d":{"c":2}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#, #"{"r":2,"b":{"s":"ok","d":""}}"#,
          #"{"r":3,"b":{"s":"ok","d":""}}"#,
          #"{"r":4,"b":{"s":"ok","d":""}}"#,
        ])
      await disconnecting.close()
      let push = try await watcher.next()
      #expect(
        push.hasPrefix(#"{"a":"m","b":{"p":"s","#) && push.contains(#""b":1"#) && push.contains(#""c":2"#),
        "\(push)")
    }
  }
}
