// Tests the memory limit that all connections of all protocols share. Firestore and the Realtime Database reject
// requests with their official error texts. The memory is released however a connection ends. `UnreadResultTests` tests
// which connections the server closes to make room. In the tests here, no connection holds its bytes long enough to be
// closed.

import Access
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

@testable import EndpointFixture
@testable import Ports

@Suite("Memory of all connections", .timeLimit(.minutes(10)))
struct PeerMemoryTests {
  private static let limit = 8 << 20

  /// The status of a call, which is awaited in the background.
  private final class StatusObserver: Sendable {
    private let ended = NIOLockedValueBox<GRPCStatus?>(nil)

    init(_ call: GRPCTestCall) {
      // This task ends at the latest when the connection closes, because that ends the call.
      Task { [ended] in
        let status = try await call.status(within: .hours(1))
        ended.withLockedValue { $0 = status }
      }
    }

    var status: GRPCStatus? { ended.withLockedValue { $0 } }
  }

  private func limits() -> PortLimits {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: Self.limit, minimumAge: .hours(1))
    return limits
  }

  @Test(
    "Connections reserve only the bytes above their free allowance, rounded up, and release all of them when they close"
  )
  func reservations() {
    for seed in 0..<200 {
      var random = SeededGenerator(seed: UInt64(seed))
      let limits = limits()
      var reservations = (0..<5).map { _ in (reservation: MemoryReservation(limits), held: [Int]()) }
      for _ in 0..<400 {
        let index = random.below(reservations.count)
        if random.below(5) == 0, let bytes = reservations[index].held.popLast() {
          reservations[index].reservation.release(bytes)
        } else if random.below(60) == 0 {
          // Closes the connection, which releases all its reservations.
          reservations[index] = (MemoryReservation(limits), [])
        } else {
          let bytes = random.below(random.below(8) == 0 ? 2 << 20 : 20_000)
          if reservations[index].reservation.reserve(bytes) { reservations[index].held.append(bytes) }
        }
        let minimum = reservations.reduce(0) { $0 + max(0, $1.held.reduce(0, +) - limits.allowanceBytes) }
        let maximum = minimum + reservations.count * (3 * 64 << 10)
        #expect(limits.memory.used >= minimum && limits.memory.used <= min(maximum, Self.limit))
      }
      reservations = []
      #expect(limits.memory.used == 0)
    }
  }

  @Test(
    "Memory limit of gRPC request bodies: bodies that exceed it are rejected, small bodies pass, all memory is released"
  )
  func grpcBodies() async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      var clients: [GRPCTestClient] = []
      var calls: [GRPCTestCall] = []
      var observers: [StatusObserver] = []
      var part = ByteBuffer()
      part.writeBytes([0])
      part.writeInteger(UInt32(4 << 20))
      part.writeRepeatingByte(1, count: 2 << 20)
      for _ in 0..<6 {
        let client = try await GRPCTestClient.connect(port: server.port.port)
        clients.append(client)
        let call = try await client.open("Commit")
        let observer = StatusObserver(call)
        calls.append(call)
        observers.append(observer)
        let before = limits.memory.used
        try? await call.send(raw: part)
        #expect(
          try await eventually { observer.status != nil || limits.memory.used > before + (2 << 20) - 200_000 }
        )
      }
      let rejected = observers.compactMap(\.status)
      #expect(rejected.count >= 2 && rejected.count <= 4, "\(rejected)")
      for status in rejected {
        #expect(status.code == .resourceExhausted)
        #expect(status.message.contains("\(Self.limit) in all"), "\(status.message)")
      }
      #expect(limits.memory.used <= Self.limit && limits.memory.used >= 4 << 20)
      try await server.client.commit([.set("c/small", ["n": .int(1)])])
      #expect(try await server.client.get("c/small").fields["n"]?.integerValue == 1)
      for (index, client) in clients.enumerated() {
        // The call ends by a reset, or with its connection.
        if index.isMultiple(of: 2) { try? await calls[index].reset() } else { await client.close() }
      }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
      let text = Proto.Value.text(String(repeating: "x", count: 900_000))
      try await server.client.commit((0..<7).map { .set("c/\($0)", ["t": text]) })
      for client in clients { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test(
    "If clients do not read gRPC responses, later reads and later writes with a response are rejected")
  func grpcResponses() async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      let text = Proto.Value.text(String(repeating: "x", count: 900_000))
      try await server.client.commit([.set("w/large", ["t": text, "n": .int(0)])])
      var clients: [GRPCTestClient] = []
      var rejected = 0
      for _ in 0..<20 {
        let client = try await GRPCTestClient.connect(port: server.port.port, window: 0)
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
          rejected += 1
        case .message: Issue.record("a message arrived through a closed window")
        }
      }
      #expect(rejected >= 10 && rejected < 20, "\(rejected) of 20 were rejected")
      #expect(limits.memory.used <= Self.limit)
      do {
        let _: Proto.Document = try await server.client.unary(
          "UpdateDocument",
          Google_Firestore_V1_UpdateDocumentRequest.with {
            $0.document.name = "\(FirestoreTestServer.documents)/w/large"
            $0.document.fields = ["n": .int(1)]
            $0.updateMask.fieldPaths = ["n"]
          })
        Issue.record("the update succeeded without memory for its response")
      } catch let status as GRPCStatus { #expect(status.code == .resourceExhausted) }
      try await server.client.commit([.set("c/small", ["n": .int(1)])])
      for client in clients { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
      #expect(try await server.client.get("w/large").fields["n"]?.integerValue == 0)
    }
  }

  @Test(
    "If a client does not read query pages, more queries of its connection wait, and other connections continue"
  )
  func grpcStreams() async throws {
    var limits = limits()
    // Results may fill three quarters of the budget. This must suffice for the unread page and for the largest page of
    // the client that reads.
    limits.memory = MemoryBudget(limit: 2 * Self.limit, minimumAge: .hours(1))
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { [limits] server in
      let text = Proto.Value.text(String(repeating: "x", count: 900_000))
      for index in 0..<4 { try await server.client.commit([.set("w/\(index)", ["t": text])]) }
      let client = try await GRPCTestClient.connect(port: server.port.port, window: 0)
      var observers: [StatusObserver] = []
      for _ in 0..<12 {
        let call = try await client.open("RunQuery")
        observers.append(StatusObserver(call))
        try await call.send(Google_Firestore_V1_RunQueryRequest.collection("w"), endStream: true)
      }
      // One page is queued and held.
      #expect(try await eventually { limits.memory.used > 1_800_000 })
      #expect(try await server.client.query(.collection("w")).filter(\.hasDocument).count == 4)
      #expect(limits.memory.used <= 4 << 20, "\(limits.memory.used)")
      #expect(observers.allSatisfy { $0.status == nil })
      await client.close()
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
      #expect(try await server.client.query(.collection("w")).filter(\.hasDocument).count == 4)
    }
  }

  @Test("Listen targets reserve memory: streams that exceed the memory limit end, and other streams continue")
  func grpcTargets() async throws {
    var limits = limits()
    limits.responseTimeout = .seconds(1)
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { [limits] server in
      let name = FirestoreTestServer.documents + "/c/" + String(repeating: "x", count: 900)
      let request = Proto.Listen.with {
        $0.database = FirestoreTestServer.database
        $0.addTarget.targetID = 1
        $0.addTarget.documents.documents = (0..<1_000).map { "\(name)\($0)" }
      }
      let nextRequest = Proto.Listen.with {
        $0.database = FirestoreTestServer.database
        $0.addTarget.targetID = 3
        $0.addTarget.documents.documents = [FirestoreTestServer.documents + "/c/d"]
      }
      var clients: [GRPCTestClient] = []
      var calls: [GRPCTestCall] = []
      var ended = 0
      /// Waits until the stream confirms the target, or ends. Returns whether it confirmed the target.
      func awaitTarget(_ call: GRPCTestCall, _ target: Int32) async throws -> Bool {
        do {
          while true {
            let change = try await call.message(as: Proto.ListenResponse.self).targetChange
            if change.targetChangeType == .add, change.targetIds.contains(target) { return true }
          }
        } catch let status as GRPCStatus {
          #expect(status.code == .resourceExhausted, "\(status)")
          ended += 1
          return false
        }
      }
      for _ in 0..<10 {
        let client = try await GRPCTestClient.connect(port: server.port.port)
        clients.append(client)
        let call = try await client.open("Listen")
        try? await call.send(request)
        // A target reserves memory once while it is a received message, and twice when the stream has stored it.
        if try await awaitTarget(call, 1) { calls.append(call) }
      }
      // A stream above the limit receives its error with the next request.
      for call in calls {
        try? await call.send(nextRequest)
        _ = try await awaitTarget(call, 3)
      }
      #expect(ended >= 3 && ended < 10, "\(ended) of 10 were ended")
      #expect(limits.memory.used <= Self.limit)
      try await server.client.commit([.set("c/small", ["n": .int(1)])])
      for client in clients { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test(
    "Memory limit of REST request bodies: bodies that exceed it get 503, small bodies pass, all memory is released"
  )
  func restBodies() async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      var clients: [RawClient] = []
      var rejected = 0
      for index in 0..<8 {
        let client = try await RawClient.connect(server.port.port)
        clients.append(client)
        // POST bodies are held until they are complete; PUT bodies are written while they arrive.
        try await client.send("POST /\(index).json HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n\"")
        try? await client.send([UInt8](repeating: 0x78, count: 2 << 20))
        #expect(
          try await eventually { limits.memory.used >= (index + 1) * (2 << 20) - 200_000 || index > 3 })
      }
      for client in clients[4...] {
        let head = try await client.read(through: "\r\n")
        if head.hasPrefix("HTTP/1.1 503 ") { rejected += 1 }
        #expect(try await client.read(through: "}\n").contains("\(Self.limit) in all"))
      }
      #expect(rejected == 4)
      #expect(try await server.rest("PUT", "/small.json", body: "1").status == 200)
      for client in clients { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
      let text = "\"" + String(repeating: "x", count: 6 << 20) + "\""
      #expect(try await server.rest("PUT", "/large.json", body: text).status == 200)
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test(
    "REST responses that clients do not read: 503 above the limit, and release when their connections close")
  func restResponses() async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      let database = try await server.engine.database("default-ns")
      let text = String(repeating: "x", count: 7 << 20)
      _ = try await database.set("fat", to: .leaf(.string(text)), as: .nobody)
      let first = try await RawClient.connect(server.port.port)
      try await first.channel.setOption(.autoRead, value: false).get()
      try await first.send("GET /fat.json HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await eventually { limits.memory.used >= 6 << 20 })
      let response = try await server.rest("GET", "/fat.json?ns=default-ns")
      #expect(response.status == 503)
      #expect(response.body.contains("\(Self.limit) in all"), "\(response.body)")
      #expect(try await server.rest("PUT", "/small.json", body: "1").status == 200)
      await first.close()
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
      #expect(try await server.rest("GET", "/fat.json?ns=default-ns").status == 200)
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test(
    "Streamed responses are released while they are sent, on a connection that stays open",
    arguments: [false, true])
  func restStreams(isHTTP2: Bool) async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      let database = try await server.engine.database("default-ns")
      let text = String(repeating: "x", count: 100_000)
      for path in ["fat/a", "fat/b", "fat/c"] as [Path] {
        _ = try await database.set(path, to: .leaf(.string(text)), as: .nobody)
      }
      if isHTTP2 {
        let client = try await HTTP2Client.open(server.port.port)
        for _ in 0..<6 {
          let response = try await client.request(.GET, "/fat.json?ns=default-ns").response()
          #expect(response.status == "200" && response.body.utf8.count > 300_000)
        }
        #expect(
          try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
        try await client.channel.close().get()
      } else {
        let client = try await RawClient.connect(server.port.port)
        for _ in 0..<6 {
          try await client.send("GET /fat.json HTTP/1.1\r\nHost: h\r\n\r\n")
          #expect(try await client.read(through: "\r\n0\r\n\r\n").utf8.count > 300_000)
        }
        #expect(
          try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
        await client.close()
      }
    }
  }

  @Test(
    "Bodies that are stored while they arrive reserve memory: 503 above the limit, and release after each complete value"
  )
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
        // The server must reserve this part of the body before the next client sends its own.
        if index < 4 { #expect(try await eventually { limits.memory.used == (index + 1) * (2 << 20) }) }
      }
      for client in clients[4...] {
        #expect(try await client.read(through: "\r\n").hasPrefix("HTTP/1.1 503 "))
        #expect(try await client.read(through: "}\n").contains("\(Self.limit) in all"))
      }
      // When the value of `b` is complete, the server stages it and releases its memory, although the body
      // continues.
      try await clients[0].send("\",\"c\":\"")
      #expect(try await eventually { limits.memory.used < 3 * (2 << 20) + 300_000 })
      try await clients[0].send(
        [UInt8](repeating: 0x78, count: 4_000_000 - (2 << 20) - 21) + Array("\"}".utf8))
      #expect(try await clients[0].read(through: "\r\n").hasPrefix("HTTP/1.1 204 "))
      for client in clients { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test(
    "If incomplete messages exceed the limit, some WebSockets are closed with code 1013 and a reason; others continue"
  )
  func socketMessages() async throws {
    let limits = limits()
    try await RealtimeTestServer.run(port: limits) { server in
      let other = try await RawSocket.open(server)
      let body = [UInt8](repeating: 0x78, count: 1 << 20)
      // The forms of an incomplete message: a part of one frame, WebSocket fragments, and some of the frames that
      // the Realtime Database's protocol announces with their number.
      let header: [UInt8] = [0x81, 0xFF, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4]
      let zeros: [UInt8] = [0, 0, 0, 0]
      let forms: [(Int) -> [UInt8]] = [
        { $0 == 0 ? header + body : body },
        { RawSocket.frame($0 == 0 ? 1 : 0, body, fin: false, mask: zeros) },
        { ($0 == 0 ? RawSocket.frame(1, Array("99".utf8)) : []) + RawSocket.frame(1, body, mask: zeros) },
      ]
      for form in forms {
        var sockets: [RawSocket] = []
        for _ in 0..<4 {
          let socket = try await RawSocket.open(server)
          sockets.append(socket)
          let channel = socket.client.channel
          for index in 0..<3 {
            let before = limits.memory.used
            try? await socket.client.send(form(index))
            #expect(
              try await eventually { !channel.isActive || limits.memory.used > before + (1 << 20) - 200_000 })
          }
          // The server releases a connection's memory when it closes its side as well.
          let open = sockets.count { $0.client.channel.isActive }
          #expect(try await eventually { server.port.connectionCount == open + 1 })
        }
        var closed = 0
        for socket in sockets where !socket.client.channel.isActive {
          // A rejected socket receives the reason. At least one is rejected, because four messages of 3 MiB exceed
          // the limit of 8 MiB.
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
        #expect(
          try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
      }
      let text = String(repeating: "x", count: 5 << 20)
      try await other.play(
        [#"{"r":2,"a":"p","b":{"p":"/x","d":"\#(text)"}}"#], expect: [#"{"r":2,"b":{"s":"ok","d":""}}"#])
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test("An event for many listeners is counted once in the memory budget, so no listener is disconnected")
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
      _ = try await database.set("fat", to: .leaf(.string(text)), as: .nobody)
      for socket in sockets {
        #expect(try await socket.next().utf8.count > text.utf8.count)
        await socket.close()
      }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }
}
