// Tests requests to databases that do not exist. If a name is only read, or all its writes are rejected, no
// state remains on disk or in memory.

import Access
import EmbeddedStore
import FirestoreProtobuf
import Foundation
import GRPCFraming
import HearthServer
import NIOCore
import OrderedStore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints
@testable import RealtimeEngine

@Suite("Unknown database names", .timeLimit(.minutes(10)))
struct UnknownNameTests {
  private static let count = 2000

  /// Sends pipelined requests on one connection and returns the statuses.
  private func statuses(
    _ server: RealtimeTestServer, _ requests: [(line: String, headers: String, body: String)]
  ) async throws -> [Int] {
    let client = try await RawClient.connect(server.port.port)
    var statuses: [Int] = []
    for request in requests {
      try await client.send(
        "\(request.line) HTTP/1.1\r\nHost: localhost\r\n\(request.headers)"
          + "Content-Length: \(request.body.utf8.count)\r\n\r\n\(request.body)")
      let head = try await client.read(through: "\r\n\r\n")
      statuses.append(Int(head.split(separator: " ")[1]) ?? 0)
      let length = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
      _ = try await client.read(Int(length?.split(separator: " ").last ?? "0") ?? 0)
    }
    await client.close()
    return statuses
  }

  private func expectNoTrace(_ server: RealtimeTestServer) async throws {
    #expect(try await server.store.databaseNames() == [])
    #expect(try await eventually { server.engine.openCount == 0 }, "\(server.engine.openCount) are open")
  }

  @Test("rejected REST requests with thousands of names leave no database, on disk or in memory")
  func rest() async throws {
    try await RealtimeTestServer.run(policy: LockedPolicy(), authentication: .rejectAll) { server in
      let requests = (0..<Self.count).map { index -> (String, String, String) in
        switch index % 5 {
        case 0: ("GET /a.json?ns=get\(index)", "", "")
        case 1: ("PUT /a.json?ns=put\(index)", "", "1")
        case 2: ("POST /a.json?ns=post\(index)", "", "{\"x\":1}")
        case 3: ("PATCH /a.json?ns=patch\(index)", "", "{\"x\":1}")
        default: ("DELETE /a.json?ns=delete\(index)", "Authorization: Bearer owner\r\n", "")
        }
      }
      let statuses = try await statuses(server, requests)
      #expect(statuses.count == Self.count && statuses.allSatisfy { $0 == 401 })
      try await expectNoTrace(server)
    }
  }

  @Test("sockets to thousands of names with rejected requests leave no database")
  func sockets() async throws {
    try await RealtimeTestServer.run(policy: LockedPolicy(), authentication: .rejectAll) { server in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for lane in 0..<8 {
          group.addTask {
            for index in 0..<(Self.count / 16) {
              let socket = try await RawSocket.open(server, "v=5&ns=s\(lane)-\(index)&ls=gone")
              for request in [
                #"{"r":1,"a":"p","b":{"p":"/x","d":1}}"#, #"{"r":2,"a":"m","b":{"p":"/x","d":{"y":1}}}"#,
                #"{"r":3,"a":"o","b":{"p":"/x","d":1}}"#, #"{"r":4,"a":"om","b":{"p":"/x","d":{"y":1}}}"#,
                #"{"r":5,"a":"q","b":{"p":"/x","h":""}}"#, #"{"r":6,"a":"g","b":{"p":"/x","q":{}}}"#,
              ] { try await socket.send(request) }
              for number in 1...6 {
                let answer = try await socket.next()
                #expect(
                  answer.hasPrefix(#"{"r":\#(number),"b":{"s":"permission_denied""#), "\(answer)")
              }
              await socket.close()
            }
          }
        }
        try await group.waitForAll()
      }
      try await expectNoTrace(server)
    }
  }

  @Test("an emulator creates a database with its first write, not with reads or invalid requests")
  func emulator() async throws {
    try await RealtimeTestServer.run { server in
      let requests = (0..<300).map { index -> (String, String, String) in
        switch index % 3 {
        case 0: ("GET /a.json?ns=get\(index)", "", "")
        case 1: ("PUT /a.json?ns=put\(index)", "", "{broken")
        default: ("PUT /a.json?ns=stale\(index)", "If-Match: \"other\"\r\n", "1")
        }
      }
      #expect(try await Set(statuses(server, requests)) == [200, 400, 412])
      try await expectNoTrace(server)

      let socket = try await RawSocket.open(server, "v=5&ns=born")
      try await socket.play(
        [
          #"{"r":1,"a":"q","b":{"p":"/x","h":""}}"#, #"{"r":2,"a":"p","b":{"p":"/x","d":1,"h":"other"}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{}}}"#,
          #"{"r":2,"b":{"s":"datastale","d":"Transaction hash does not match"}}"#,
        ])
      #expect(try await server.store.databaseNames() == [])
      // A listen that started before the database was created receives all later changes in order.
      try await socket.play(
        [
          #"{"r":3,"a":"g","b":{"p":"/x","q":{}}}"#, #"{"r":4,"a":"p","b":{"p":"/x","d":1}}"#,
          #"{"r":5,"a":"g","b":{"p":"/x","q":{}}}"#,
        ],
        expect: [
          #"{"r":3,"b":{"s":"ok","d":null}}"#, #"{"a":"d","b":{"p":"x","d":1}}"#,
          #"{"r":4,"b":{"s":"ok","d":""}}"#, #"{"r":5,"b":{"s":"ok","d":1}}"#,
        ])
      #expect(try await server.store.databaseNames() == ["realtime/born"])
      await socket.close()
      #expect(try await server.rest("GET", "/x.json?ns=born").body == "1")
    }
  }

  @Test("concurrent first writes to a name create one database", arguments: 0..<5)
  func race(round: Int) async throws {
    try await RealtimeTestServer.run { server in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<20 {
          group.addTask {
            let answer = try await server.rest("PUT", "/\(writer).json?ns=race", body: "\(writer)")
            #expect(answer.status == 200)
          }
        }
        try await group.waitForAll()
      }
      let all = try await server.rest("GET", "/.json?ns=race&shallow=true").body
      for writer in 0..<20 { #expect(all.contains("\"\(writer)\":true")) }
      #expect(try await server.store.databaseNames() == ["realtime/race"])
    }
  }

  @Test("without --emulator no rejected call over gRPC or REST leaves a database in the directory")
  func production() async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let testServer = try await FirestoreTestServer.start(.directory(directory)) { $0.emulator = false }
    for index in 0..<(Self.count / 4) {
      let metadata = index % 2 == 0 ? [] : [("authorization", "Bearer owner")]
      var get = Google_Firestore_V1_GetDocumentRequest()
      get.name = "projects/p\(index)/databases/d\(index)/documents/a/b"
      await #expect(throws: GRPCStatus.self) {
        _ =
          try await testServer.client.unary("GetDocument", get, metadata: metadata)
          as Google_Firestore_V1_Document
      }
      var commit = Google_Firestore_V1_CommitRequest()
      commit.database = "projects/c\(index)/databases/d"
      await #expect(throws: GRPCStatus.self) {
        _ =
          try await testServer.client.unary("Commit", commit, metadata: metadata)
          as Google_Firestore_V1_CommitResponse
      }
      var listen = Google_Firestore_V1_ListenRequest()
      listen.database = "projects/l\(index)/databases/d"
      listen.addTarget.documents.documents = [listen.database + "/documents/a/b"]
      let call = try await testServer.client.open("Listen", metadata: metadata)
      // The server may reject the call because of its headers before the client sends the message.
      try? await call.send(listen, endStream: true)
      // A database that does not exist has no rules that could require credentials.
      #expect(try await call.status().code == (metadata.isEmpty ? .notFound : .unauthenticated))
    }
    let rest = try await RawClient.connect(testServer.server.databasePort ?? 0)
    for index in 0..<100 {
      try await rest.send(
        "PUT /a.json?ns=n\(index) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1")
      #expect(try await rest.read(through: "}\n").hasPrefix("HTTP/1.1 401 "))
    }
    await rest.close()
    await testServer.stop()
    let store = try await EmbeddedStore.open(directory: directory)
    let requested = ["/projects/p", "/projects/c", "/projects/l", "realtime/n"]
    let names = try await store.databaseNames()
    #expect(names.allSatisfy { name in !requested.contains { name.contains($0) } }, "\(names)")
    try await store.close()
  }
}
