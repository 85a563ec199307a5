// Tests the subtle behaviours of the protocol by the exact messages on the wire. Each test has the number of
// a worked example in the specification. The examples 9.19 and 9.20 concern rules and have no test here.

import JSON
import NIOCore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture

@Suite("Worked examples on the wire", .timeLimit(.minutes(10)))
struct WireExampleTests {
  @Test("9.1: the push of a client's own write precedes its acknowledgement")
  func ownWrite() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"q","b":{"p":"/shop","h":""}}"#,
          #"{"r":4,"a":"p","b":{"p":"/shop/tea/stock","d":42}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{}}}"#, #"{"a":"d","b":{"p":"shop/tea/stock","d":42}}"#,
          #"{"r":4,"b":{"s":"ok","d":""}}"#,
        ])
    }
  }

  @Test("9.2: a write with a stale hash is rejected after the client received the newer value")
  func staleHash() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      let other = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/shop/tea/stock","d":41}}"#,
          #"{"r":2,"a":"q","b":{"p":"/shop/tea/stock","h":""}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#, #"{"a":"d","b":{"p":"shop/tea/stock","d":41}}"#,
          #"{"r":2,"b":{"s":"ok","d":{}}}"#,
        ])
      try await other.play(
        [#"{"r":1,"a":"p","b":{"p":"/shop/tea/stock","d":50}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      try await socket.play(
        [#"{"r":5,"a":"p","b":{"p":"/shop/tea/stock","d":42,"h":"FKQEQrg9eSmOibuEATBfMSlup8g="}}"#],
        expect: [
          #"{"a":"d","b":{"p":"shop/tea/stock","d":50}}"#,
          #"{"r":5,"b":{"s":"datastale","d":"Transaction hash does not match"}}"#,
        ])
      let hash = Node.leaf(.int(50)).hash
      try await socket.play(
        [#"{"r":6,"a":"p","b":{"p":"/shop/tea/stock","d":51,"h":"\#(hash)"}}"#],
        expect: [#"{"a":"d","b":{"p":"shop/tea/stock","d":51}}"#, #"{"r":6,"b":{"s":"ok","d":""}}"#])
    }
  }

  @Test(
    "9.3: a listen with a matching hash gets no data, and a listen with another hash gets the complete value")
  func resume() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/shop/tea","d":{"name":"tea","stock":41}}}"#,
          #"{"r":9,"a":"q","b":{"p":"/shop/tea","h":"Wd9WHAEgYdDgRxO+qsMzasWv2DE="}}"#,
          #"{"r":10,"a":"q","b":{"p":"/shop/gone","h":"Wd9WHAEgYdDgRxO+qsMzasWv2DE="}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#, #"{"r":9,"b":{"s":"ok","d":{}}}"#,
          #"{"a":"d","b":{"p":"shop/gone","d":null}}"#, #"{"r":10,"b":{"s":"ok","d":{}}}"#,
        ])
    }
  }

  @Test("9.4: a listen with a compound hash receives the ranges that differ, or the complete value")
  func rangeMerge() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/doc","d":{"a":{"x":1},"b":"r","c":true}}}"#,
          #"{"r":2,"a":"q","b":{"p":"/doc","h":"qZcBZHXdxbKd9iJsEPLpMzoW/Mc=","ch":{"ps":["a/x","b"],"#
            + #""hs":["1MrbPrFkag36VJVl+ntcevAS2SE=","ZXyd1kHQwhyYqq8gUvgycHXesak=",""]}}}"#,
        ], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      let push = try await socket.next()
      let whole = #"{"a":"d","b":{"p":"doc","d":{"a":{"x":1},"b":"r","c":true}}}"#
      #expect(push == whole || push.hasPrefix(#"{"a":"rm","b":{"p":"doc","d":["#), "\(push)")
      #expect(try await socket.next() == #"{"r":2,"b":{"s":"ok","d":{}}}"#)
    }
  }

  @Test(
    "9.5: without an index a listen gets all children and a warning, then only its window's changes; a get fails"
  )
  func noIndex() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/notes","d":{"n1":{"due":5},"n2":{"due":1},"n3":{"due":9}}}}"#,
          #"{"r":3,"a":"q","b":{"p":"/notes","q":{"l":2,"vf":"r","i":"due"},"t":1,"h":""}}"#,
          #"{"r":4,"a":"p","b":{"p":"/notes/n3","d":null}}"#,
          #"{"r":5,"a":"g","b":{"p":"/notes","q":{"l":2,"vf":"r","i":"due"}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#,
          #"{"a":"d","b":{"p":"notes","d":{"n1":{"due":5},"n2":{"due":1},"n3":{"due":9}},"t":1}}"#,
          #"{"r":3,"b":{"s":"ok","d":{"w":["no_index"]}}}"#,
          #"{"a":"m","b":{"p":"notes","d":{"n3":null,"n2":{"due":1}},"t":1}}"#,
          #"{"r":4,"b":{"s":"ok","d":""}}"#,
          #"{"r":5,"b":{"s":"failure","d":"Index not defined, add \".indexOn\": \"due\", for path \"/notes\", to the rules"}}"#,
        ])
      // A client that sends the hash of the window gets no data, although the location has more children.
      let hash = try Node(json: Array(#"{"n1":{"due":5}}"#.utf8), .read).hash
      try await socket.play(
        [#"{"r":6,"a":"q","b":{"p":"/notes","q":{"l":1,"vf":"r","i":"due"},"t":2,"h":"\#(hash)"}}"#],
        expect: [#"{"r":6,"b":{"s":"ok","d":{"w":["no_index"]}}}"#])
    }
  }

  @Test("9.6: all clients' spellings of exclusive bounds select the same children")
  func exclusiveBounds() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"p","b":{"p":"/s","d":{"a":{"score":10},"b":{"score":15},"c":{"score":20}}}}"#],
        expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      try await server.publish(
        rules: #"{"rules":{".read":true,".write":true,"s":{".indexOn":"score"}}}"#, in: "demo")
      let queries = [
        #"{"sp":10,"sn":"[MAX_NAME]","sin":false,"ep":20,"en":"[MIN_NAME]","ein":false,"i":"score"}"#,
        #"{"sp":10,"sn":"[MAX_NAME]","ep":20,"en":"[MIN_NAME]","i":"score"}"#,
        // The spelling of Android and the Admin SDK for Java.
        #"{"sp":10,"sn":"[MAX_KEY]","ep":20,"en":"[MIN_NAME]","i":"score"}"#,
        #"{"sp":"a","sin":false,"ep":"c","ein":false,"i":".key"}"#, #"{"sp":"a ","ep":"bz","i":".key"}"#,
      ]
      for query in queries {
        try await socket.play(
          [#"{"r":2,"a":"g","b":{"p":"/s","q":"# + query + "}}"],
          expect: [#"{"r":2,"b":{"s":"ok","d":{"b":{"score":15}}}}"#])
      }
    }
  }

  @Test("9.7: when a window slides, the client receives one merge with its tag")
  func slidingWindow() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/log","d":{"k1":1,"k2":2,"k3":3}}}"#,
          #"{"r":2,"a":"q","b":{"p":"/log","q":{"l":2,"vf":"r","i":".key"},"t":6,"h":""}}"#,
          #"{"r":3,"a":"p","b":{"p":"/log/k4","d":{"msg":"new"}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#, #"{"a":"d","b":{"p":"log","d":{"k2":2,"k3":3},"t":6}}"#,
          #"{"r":2,"b":{"s":"ok","d":{}}}"#,
          #"{"a":"m","b":{"p":"log","d":{"k2":null,"k4":{"msg":"new"}},"t":6}}"#,
          #"{"r":3,"b":{"s":"ok","d":""}}"#,
        ])
      // The child that returns to the window is sent completely, because the client has dropped it.
      try await socket.play(
        [#"{"r":4,"a":"p","b":{"p":"/log/k3","d":null}}"#],
        expect: [
          #"{"a":"m","b":{"p":"log","d":{"k3":null,"k2":2},"t":6}}"#, #"{"r":4,"b":{"s":"ok","d":""}}"#,
        ])
    }
  }

  @Test("9.8: an update of several paths reaches each listener as one message")
  func atomicFanOut() async throws {
    try await RealtimeTestServer.run { server in
      let root = try await RawSocket.open(server)
      let user = try await RawSocket.open(server)
      try await root.play(
        [#"{"r":1,"a":"p","b":{"p":"/count/u1","d":7}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      try await user.play(
        [#"{"r":1,"a":"q","b":{"p":"/by-user","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      try await root.play(
        [
          #"{"r":2,"a":"q","b":{"p":"/","h":""}}"#,
          #"{"r":7,"a":"m","b":{"p":"/","d":{"posts/p1":{"t":"hi"},"by-user/u1/p1":{"t":"hi"},"count/u1":{".sv":{"increment":1}}}}}"#,
        ],
        expect: [#"{"a":"d","b":{"p":"","d":{"count":{"u1":7}}}}"#, #"{"r":2,"b":{"s":"ok","d":{}}}"#])
      let push = try await root.next()
      #expect(push.hasPrefix(#"{"a":"m","b":{"p":"","d":{"#), "\(push)")
      let merge = try JSONValue(json: push)["b"]?["d"]
      #expect(
        merge == (try JSONValue(json: #"{"posts/p1":{"t":"hi"},"by-user/u1/p1":{"t":"hi"},"count/u1":8}"#)))
      #expect(try await root.next() == #"{"r":7,"b":{"s":"ok","d":""}}"#)
      #expect(try await user.next() == #"{"a":"d","b":{"p":"by-user/u1/p1","d":{"t":"hi"}}}"#)
    }
  }

  @Test("9.9: a priority can be written alone, and is then pushed alone")
  func priority() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/q","d":{"z":{".value":"x",".priority":1},"a":{".value":"y",".priority":2}}}}"#,
          #"{"r":2,"a":"q","b":{"p":"/q","h":""}}"#, #"{"r":8,"a":"p","b":{"p":"/q/z/.priority","d":3}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#,
          #"{"a":"d","b":{"p":"q","d":{"a":{".value":"y",".priority":2},"z":{".value":"x",".priority":1}}}}"#,
          #"{"r":2,"b":{"s":"ok","d":{}}}"#, #"{"a":"d","b":{"p":"q/z/.priority","d":3}}"#,
          #"{"r":8,"b":{"s":"ok","d":""}}"#,
        ])
    }
  }

  @Test("9.10: arrays are stored as objects, and returned as arrays like Firebase does")
  func arrays() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":2,"a":"p","b":{"p":"/seats","d":["ann",null,"cy"]}}"#,
          #"{"r":3,"a":"g","b":{"p":"/seats","q":{}}}"#,
        ],
        expect: [#"{"r":2,"b":{"s":"ok","d":""}}"#, #"{"r":3,"b":{"s":"ok","d":{"0":"ann","2":"cy"}}}"#])
      #expect(try await server.rest("GET", "/seats.json?ns=demo").body == #"["ann",null,"cy"]"#)
      #expect(
        try await server.rest("GET", "/seats.json?ns=demo&format=export").body == #"{"0":"ann","2":"cy"}"#)
      #expect(try await server.rest("DELETE", "/seats/0.json?ns=demo").status == 200)
      #expect(try await server.rest("GET", "/seats.json?ns=demo").body == #"{"2":"cy"}"#)
    }
  }

  @Test(
    "9.11: an increment beyond 64 bits becomes a double; an increment of a string or object starts at zero")
  func increments() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/n","d":9223372036854775807}}"#,
          #"{"r":2,"a":"q","b":{"p":"/n","h":""}}"#,
          #"{"r":3,"a":"p","b":{"p":"/n","d":{".sv":{"increment":1}}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#, #"{"a":"d","b":{"p":"n","d":9223372036854775807}}"#,
          #"{"r":2,"b":{"s":"ok","d":{}}}"#, #"{"a":"d","b":{"p":"n","d":9.223372036854776e+18}}"#,
          #"{"r":3,"b":{"s":"ok","d":""}}"#,
        ])
      for value in [#""seven""#, #"{"x":1}"#] {
        try await socket.play(
          [
            #"{"r":4,"a":"p","b":{"p":"/n","d":\#(value)}}"#,
            #"{"r":5,"a":"p","b":{"p":"/n","d":{".sv":{"increment":1}}}}"#,
          ],
          expect: [
            #"{"a":"d","b":{"p":"n","d":\#(value)}}"#, #"{"r":4,"b":{"s":"ok","d":""}}"#,
            #"{"a":"d","b":{"p":"n","d":1}}"#, #"{"r":5,"b":{"s":"ok","d":""}}"#,
          ])
      }
    }
  }

  @Test(
    "9.12: removing the last child removes emptied ancestors; a child written below a leaf keeps the leaf's priority"
  )
  func pruning() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/cart","d":{"u7":{"qty":1}}}}"#,
          #"{"r":2,"a":"q","b":{"p":"/cart","h":""}}"#,
          #"{"r":9,"a":"p","b":{"p":"/cart/u7/qty","d":null}}"#, #"{"r":10,"a":"g","b":{"p":"/","q":{}}}"#,
          #"{"r":11,"a":"p","b":{"p":"/cart","d":{".value":"closed",".priority":4}}}"#,
          #"{"r":12,"a":"p","b":{"p":"/cart/u8","d":true}}"#, #"{"r":13,"a":"g","b":{"p":"/cart","q":{}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#, #"{"a":"d","b":{"p":"cart","d":{"u7":{"qty":1}}}}"#,
          #"{"r":2,"b":{"s":"ok","d":{}}}"#, #"{"a":"d","b":{"p":"cart/u7/qty","d":null}}"#,
          #"{"r":9,"b":{"s":"ok","d":""}}"#, #"{"r":10,"b":{"s":"ok","d":null}}"#,
          #"{"a":"d","b":{"p":"cart","d":{".value":"closed",".priority":4}}}"#,
          #"{"r":11,"b":{"s":"ok","d":""}}"#, #"{"a":"d","b":{"p":"cart/u8","d":true}}"#,
          #"{"r":12,"b":{"s":"ok","d":""}}"#, #"{"r":13,"b":{"s":"ok","d":{"u8":true,".priority":4}}}"#,
        ])
    }
  }

  @Test("9.13: a lone zero gets no response, and the server never sends one")
  func keepAlive() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      for number in 1...3 {
        try await socket.send(text: "0")
        try await socket.send(#"{"r":\#(number),"a":"s","b":{"c":{}}}"#)
        let frame = try await socket.readFrame()
        let answer = Array(#"{"t":"d","d":{"r":\#(number),"b":{"s":"ok","d":""}}}"#.utf8)
        #expect(frame == RawSocket.Frame(opcode: 1, payload: answer))
      }
    }
  }

  @Test("9.14: long messages are sent in frames of 16,384 characters, and no surrogate pair is split")
  func splitMessage() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      let head = #"{"t":"d","d":{"r":2,"b":{"s":"ok","d":""#
      let tail = #""}}}"#
      // In the response the first half of the pair is character 16,384.
      let text =
        String(repeating: "x", count: 16_383 - head.utf16.count) + "\u{1F600}"
        + String(repeating: "y", count: 40_000 - 16_385 - tail.utf16.count)
      let message = Array((#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/big","d":""# + text + tail).utf16)
      try await socket.send(text: "3")
      for piece in [message[..<16_000], message[16_000..<32_000], message[32_000...]] {
        try await socket.send(text: String(decoding: piece, as: UTF16.self))
      }
      #expect(try await socket.next() == #"{"r":1,"b":{"s":"ok","d":""}}"#)
      try await socket.send(#"{"r":2,"a":"g","b":{"p":"/big","q":{}}}"#)
      #expect(try await socket.readFrame().payload == [UInt8(ascii: "3")])
      var frames: [String] = []
      for _ in 0..<3 { frames.append(String(decoding: try await socket.readFrame().payload, as: UTF8.self)) }
      #expect(frames.map(\.utf16.count) == [16_383, 16_384, 7_233] && frames.joined() == head + text + tail)
    }
  }

  @Test("9.15: an idle client's statistics are answered, and its pings get a pong with a payload")
  func idle() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"s","b":{"c":{"sdk.js.12-18-0":1}}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      try await socket.send(text: #"{"t":"c","d":{"t":"p","d":{}}}"#)
      #expect(try await socket.text() == #"{"t":"c","d":{"t":"o","d":{}}}"#)
    }
  }
}
