// What all connections together make the server hold: bounded over connections and protocols, refused in each product's
// own words, and given back whatever becomes of those who held it.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import OrderedStore
import RandomModels
import RealtimeEngine
import RealtimeModel
import SwiftProtobuf
import Testing

@testable import Endpoints

@Suite("The memory of all peers", .timeLimit(.minutes(10)))
struct PeerMemoryTests {
  private static let limit = 8 << 20

  /// How a call ends, while others are looked at.
  private final class Ending: Sendable {
    private let ended = NIOLockedValueBox<GRPCStatus?>(nil)

    init(_ call: GRPCTestCall) {
      // With its connection the call ends at the latest.
      Task { [ended] in
        let status = try await call.status(within: .hours(1))
        ended.withLockedValue { $0 = status }
      }
    }

    var status: GRPCStatus? { ended.withLockedValue { $0 } }
  }

  private func limits() -> PortLimits {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: Self.limit)
    return limits
  }

  @Test(
    "whatever accounts take and give, the budget is what they hold beyond their allowance, in steps; in the end 0"
  )
  func accounts() {
    for seed in 0..<200 {
      var random = SeededGenerator(seed: UInt64(seed))
      let limits = limits()
      var accounts = (0..<5).map { _ in (account: MemoryReservation(limits), held: [Int]()) }
      for _ in 0..<400 {
        let index = random.below(accounts.count)
        if random.below(5) == 0, let bytes = accounts[index].held.popLast() {
          accounts[index].account.release(bytes)
        } else if random.below(60) == 0 {
          // The connection is gone, with all it holds.
          accounts[index] = (MemoryReservation(limits), [])
        } else {
          let bytes = random.below(random.below(8) == 0 ? 2 << 20 : 20_000)
          if accounts[index].account.reserve(bytes) { accounts[index].held.append(bytes) }
        }
        let least = accounts.reduce(0) { $0 + max(0, $1.held.reduce(0, +) - limits.freeBytes) }
        let most = least + accounts.count * (3 * 64 << 10)
        #expect(limits.memory.used >= least && limits.memory.used <= min(most, Self.limit))
      }
      accounts = []
      #expect(limits.memory.used == 0)
    }
  }

  @Test(
    "bodies on many gRPC connections: the one too many is refused, small ones pass, and all is given back")
  func grpcBodies() async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { running in
      var clients: [GRPCTestClient] = []
      var calls: [GRPCTestCall] = []
      var endings: [Ending] = []
      var part = ByteBuffer()
      part.writeBytes([0])
      part.writeInteger(UInt32(4 << 20))
      part.writeRepeatingByte(1, count: 2 << 20)
      for _ in 0..<6 {
        let client = try await GRPCTestClient.connect(port: running.port.port)
        clients.append(client)
        let call = try await client.open("Commit")
        let ending = Ending(call)
        calls.append(call)
        endings.append(ending)
        let before = limits.memory.used
        try? await call.send(raw: part)
        #expect(
          try await eventually { ending.status != nil || limits.memory.used > before + (2 << 20) - 200_000 })
      }
      let refused = endings.compactMap(\.status)
      #expect(refused.count >= 2 && refused.count <= 4, "\(refused)")
      for status in refused {
        #expect(status.code == .resourceExhausted)
        #expect(status.message.contains("\(Self.limit) in all"), "\(status.message)")
      }
      #expect(limits.memory.used <= Self.limit && limits.memory.used >= 4 << 20)
      try await running.client.commit([.set("c/small", ["n": .int(1)])])
      #expect(try await running.client.get("c/small").fields["n"]?.integerValue == 1)
      for (index, client) in clients.enumerated() {
        // By a reset, or with the whole connection.
        if index.isMultiple(of: 2) { try? await calls[index].reset() } else { await client.close() }
      }
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
      let text = Proto.Value.text(String(repeating: "x", count: 900_000))
      try await running.client.commit((0..<7).map { .set("c/\($0)", ["t": text]) })
      for client in clients { await client.close() }
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
    }
  }

  @Test(
    "answers that many gRPC connections do not take: reads are refused, and what would change something too")
  func grpcAnswers() async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { running in
      let text = Proto.Value.text(String(repeating: "x", count: 900_000))
      try await running.client.commit([.set("w/large", ["t": text, "n": .int(0)])])
      var clients: [GRPCTestClient] = []
      var refused = 0
      for _ in 0..<20 {
        let client = try await GRPCTestClient.connect(port: running.port.port, window: 0)
        clients.append(client)
        let call = try await client.open("GetDocument")
        try await call.send(
          Google_Firestore_V1_GetDocumentRequest.with {
            $0.name = "\(FirestoreTestServer.documents)/w/large"
          }, endStream: true)
        switch try await call.next() {
        case .metadata: break
        case .end(let status, _):
          #expect(status.code == .resourceExhausted, "\(status)")
          refused += 1
        case .message: Issue.record("a message came through a shut window")
        }
      }
      #expect(refused >= 10 && refused < 20, "\(refused) of 20 were refused")
      #expect(limits.memory.used <= Self.limit)
      do {
        let _: Proto.Document = try await running.client.unary(
          "UpdateDocument",
          Google_Firestore_V1_UpdateDocumentRequest.with {
            $0.document.name = "\(FirestoreTestServer.documents)/w/large"
            $0.document.fields = ["n": .int(1)]
            $0.updateMask.fieldPaths = ["n"]
          })
        Issue.record("the server had no room for the answer")
      } catch let status as GRPCStatus { #expect(status.code == .resourceExhausted) }
      try await running.client.commit([.set("c/small", ["n": .int(1)])])
      for client in clients { await client.close() }
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
      #expect(try await running.client.get("w/large").fields["n"]?.integerValue == 0)
    }
  }

  @Test("pages of queries that are not taken: the query ends, others do not")
  func grpcStreams() async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { running in
      let text = Proto.Value.text(String(repeating: "x", count: 900_000))
      for index in 0..<4 { try await running.client.commit([.set("w/\(index)", ["t": text])]) }
      let client = try await GRPCTestClient.connect(port: running.port.port, window: 0)
      var ended = 0
      for _ in 0..<12 {
        let before = limits.memory.used
        let call = try await client.open("RunQuery")
        let ending = Ending(call)
        try await call.send(Google_Firestore_V1_RunQueryRequest.collection("w"), endStream: true)
        // A page of it waits, or it has ended.
        #expect(try await eventually { ending.status != nil || limits.memory.used > before + 700_000 })
        if let status = ending.status {
          #expect(status.code == .resourceExhausted, "\(status)")
          ended += 1
        }
      }
      #expect(ended >= 3 && ended < 12, "\(ended) of 12 were ended")
      #expect(limits.memory.used <= Self.limit)
      await client.close()
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
      #expect(try await running.client.query(.collection("w")).filter(\.hasDocument).count == 4)
    }
  }

  @Test("what Listen streams were asked for counts while they last: the one too many is ended, others go on")
  func grpcTargets() async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { running in
      let name = FirestoreTestServer.documents + "/c/" + String(repeating: "x", count: 900)
      let request = Proto.Listen.with {
        $0.database = FirestoreTestServer.database
        $0.addTarget.targetID = 1
        $0.addTarget.documents.documents = (0..<1_000).map { "\(name)\($0)" }
      }
      let word = Proto.Listen.with {
        $0.database = FirestoreTestServer.database
        $0.addTarget.targetID = 3
        $0.addTarget.documents.documents = [FirestoreTestServer.documents + "/c/d"]
      }
      var clients: [GRPCTestClient] = []
      var calls: [GRPCTestCall] = []
      var ended = 0
      /// Waits until the stream says that it has a target, or has ended.
      func answered(_ call: GRPCTestCall, _ target: Int32) async throws -> Bool {
        do {
          while true {
            let said = try await call.message(as: Proto.Listened.self).targetChange
            if said.targetChangeType == .add, said.targetIds.contains(target) { return true }
          }
        } catch let status as GRPCStatus {
          #expect(status.code == .resourceExhausted, "\(status)")
          ended += 1
          return false
        }
      }
      for _ in 0..<10 {
        let client = try await GRPCTestClient.connect(port: running.port.port)
        clients.append(client)
        let call = try await client.open("Listen")
        try? await call.send(request)
        // Counted once as it came in, and twice as it is kept.
        if try await answered(call, 1) { calls.append(call) }
      }
      // Whoever is over is told at the next word.
      for call in calls {
        try? await call.send(word)
        _ = try await answered(call, 3)
      }
      #expect(ended >= 3 && ended < 10, "\(ended) of 10 were ended")
      #expect(limits.memory.used <= Self.limit)
      try await running.client.commit([.set("c/small", ["n": .int(1)])])
      for client in clients { await client.close() }
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
    }
  }

  @Test("bodies on many REST connections: 503 to the one too many, small ones pass, and all is given back")
  func restBodies() async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      var clients: [RawClient] = []
      var refused = 0
      for index in 0..<8 {
        let client = try await RawClient.connect(server.port.port)
        clients.append(client)
        // Those of POST are held until they are whole, those of PUT written while they come.
        try await client.send("POST /\(index).json HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n\"")
        try? await client.send([UInt8](repeating: 0x78, count: 2 << 20))
        #expect(
          try await eventually { limits.memory.used >= (index + 1) * (2 << 20) - 200_000 || index > 3 })
      }
      for client in clients[4...] {
        let head = try await client.read(through: "\r\n")
        if head.hasPrefix("HTTP/1.1 503 ") { refused += 1 }
        #expect(try await client.read(through: "}\n").contains("\(Self.limit) in all"))
      }
      #expect(refused == 4)
      #expect(try await server.rest("PUT", "/small.json", body: "1").status == 200)
      for client in clients { await client.close() }
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
      let text = "\"" + String(repeating: "x", count: 6 << 20) + "\""
      #expect(try await server.rest("PUT", "/large.json", body: text).status == 200)
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
    }
  }

  @Test(
    "REST answers that nobody reads: 503 beyond the budget, and given back when their connections are gone")
  func restAnswers() async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      let database = try await server.engine.database("default-ns")
      let text = String(repeating: "x", count: 7 << 20)
      _ = try await database.set("fat", to: .leaf(.string(text)), as: .anonymous)
      let first = try await RawClient.connect(server.port.port)
      try await first.channel.setOption(.autoRead, value: false).get()
      try await first.send("GET /fat.json HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await eventually { limits.memory.used >= 6 << 20 })
      let answer = try await server.rest("GET", "/fat.json?ns=default-ns")
      #expect(answer.status == 503)
      #expect(answer.body.contains("\(Self.limit) in all"), "\(answer.body)")
      #expect(try await server.rest("PUT", "/small.json", body: "1").status == 200)
      await first.close()
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
      #expect(try await server.rest("GET", "/fat.json?ns=default-ns").status == 200)
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
    }
  }

  @Test(
    "answers that leave in pieces are given back as they go, on a connection that lasts",
    arguments: [false, true])
  func restStreams(isHTTP2: Bool) async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      let database = try await server.engine.database("default-ns")
      let text = String(repeating: "x", count: 100_000)
      for path in ["fat/a", "fat/b", "fat/c"] as [Path] {
        _ = try await database.set(path, to: .leaf(.string(text)), as: .anonymous)
      }
      if isHTTP2 {
        let client = try await HTTP2Client.open(server.port.port)
        for _ in 0..<6 {
          let answer = try await client.request(.GET, "/fat.json?ns=default-ns").answer()
          #expect(answer.status == "200" && answer.body.utf8.count > 300_000)
        }
        #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
        try await client.channel.close().get()
      } else {
        let client = try await RawClient.connect(server.port.port)
        for _ in 0..<6 {
          try await client.send("GET /fat.json HTTP/1.1\r\nHost: h\r\n\r\n")
          #expect(try await client.read(through: "\r\n0\r\n\r\n").utf8.count > 300_000)
        }
        #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
        await client.close()
      }
    }
  }

  @Test(
    "what is kept of a body that is written while it comes counts: 503 to the one too many, then given back")
  func restImports() async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      var clients: [RawClient] = []
      for index in 0..<6 {
        let client = try await RawClient.connect(server.port.port)
        clients.append(client)
        try await client.send(
          "PUT /\(index).json?print=silent HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n{\"a\":1,\"b\":\""
        )
        try? await client.send([UInt8](repeating: 0x78, count: 2 << 20))
        // All of it, or the next would take the room that this one still needs.
        if index < 4 { #expect(try await eventually { limits.memory.used == (index + 1) * (2 << 20) }) }
      }
      for client in clients[4...] {
        #expect(try await client.read(through: "\r\n").hasPrefix("HTTP/1.1 503 "))
        #expect(try await client.read(through: "}\n").contains("\(Self.limit) in all"))
      }
      // What has come whole is kept no more.
      try await clients[0].send("\",\"c\":\"")
      #expect(try await eventually { limits.memory.used < 3 * (2 << 20) + 300_000 })
      try await clients[0].send(
        [UInt8](repeating: 0x78, count: 4_000_000 - (2 << 20) - 21) + Array("\"}".utf8))
      #expect(try await clients[0].read(through: "\r\n").hasPrefix("HTTP/1.1 204 "))
      for client in clients { await client.close() }
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
    }
  }

  @Test("messages that sockets send in part, in each of the three ways: 1013 with the reason, others go on")
  func socketMessages() async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      let other = try await RawSocket.open(server)
      let body = [UInt8](repeating: 0x78, count: 1 << 20)
      // Part of one frame; fragments; and the counted pieces of the protocol.
      let header: [UInt8] = [0x81, 0xFF, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4]
      let zeros: [UInt8] = [0, 0, 0, 0]
      let ways: [(Int) -> [UInt8]] = [
        { $0 == 0 ? header + body : body },
        { RawSocket.frame($0 == 0 ? 1 : 0, body, fin: false, mask: zeros) },
        { ($0 == 0 ? RawSocket.frame(1, Array("99".utf8)) : []) + RawSocket.frame(1, body, mask: zeros) },
      ]
      for way in ways {
        var sockets: [RawSocket] = []
        for _ in 0..<4 {
          let socket = try await RawSocket.open(server)
          sockets.append(socket)
          let channel = socket.client.channel
          for index in 0..<3 {
            let before = limits.memory.used
            try? await socket.client.send(way(index))
            #expect(
              try await eventually { !channel.isActive || limits.memory.used > before + (1 << 20) - 200_000 })
          }
          // The server gives back what a connection held when that has ended on its side, too.
          let open = sockets.count { $0.client.channel.isActive }
          #expect(try await eventually { server.port.connectionCount == open + 1 })
        }
        var closed = 0
        for socket in sockets where !socket.client.channel.isActive {
          // Whoever came too late is told; there is at least one, since twelve are more than eight.
          let frame = try await socket.readFrame()
          #expect(frame.opcode == 8 && frame.payload.prefix(2) == [3, 245], "\(frame.payload.prefix(2))")
          #expect(String(decoding: frame.payload.dropFirst(2), as: UTF8.self).contains("in all"))
          closed += 1
        }
        #expect(closed >= 1 && closed < 4, "\(closed) of 4 were closed")
        #expect(limits.memory.used <= Self.limit)
        try await other.play(
          [#"{"r":1,"a":"p","b":{"p":"/x","d":1}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
        for socket in sockets { await socket.close() }
        #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
      }
      let text = String(repeating: "x", count: 5 << 20)
      try await other.play(
        [#"{"r":2,"a":"p","b":{"p":"/x","d":"\#(text)"}}"#], expect: [#"{"r":2,"b":{"s":"ok","d":""}}"#])
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
    }
  }

  @Test("what many listeners are told at once counts once: none of them is cut off for it")
  func broadcast() async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      var sockets: [RawSocket] = []
      for _ in 0..<16 {
        let socket = try await RawSocket.open(server)
        try await socket.send(#"{"r":1,"a":"q","b":{"p":"/fat","h":""}}"#)
        while try await socket.next() != #"{"r":1,"b":{"s":"ok","d":{}}}"# {}
        sockets.append(socket)
      }
      let text = String(repeating: "x", count: 4 << 20)
      let database = try await server.engine.database("demo")
      _ = try await database.set("fat", to: .leaf(.string(text)), as: .anonymous)
      for socket in sockets {
        #expect(try await socket.next().utf8.count > text.utf8.count)
        await socket.close()
      }
      #expect(try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are left")
    }
  }
}
