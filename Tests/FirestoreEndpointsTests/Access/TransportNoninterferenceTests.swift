// Tests that denied data has no influence on any transport. Two servers store the same permitted documents and different
// denied documents. A policy denies by path and at random. Every response over gRPC, REST and WebChannel, and every
// listener's result, must be the same from both servers, and no byte may show a denied document.
//
// Each seed makes a program, a random sequence of writes and requests. The environment variable HEARTH_ACCESS_PROGRAMS
// sets the number of programs, and HEARTH_SEED sets the first seed. `make access` runs many programs.

import Access
import AccessFixture
import FirestoreProtobuf
import FirestoreWire
import Foundation
import Locking
import OrderedStore
import Ports
import RandomModels
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Denied data has no influence on any transport", .timeLimit(.minutes(30)))
struct TransportNoninterferenceTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let programCount =
    environment["HEARTH_ACCESS_PROGRAMS"].flatMap(UInt64.init).map { max(1, $0 / 4) } ?? 12
  private static let seed = environment["HEARTH_SEED"].flatMap(UInt64.init) ?? 1
  /// The text by which responses are searched for denied documents. Each denied document has a field with this name.
  private static let marker = "zebra"

  /// Denies operations on the collection `d`, and a sixth of all others by a hash of the operation.
  private static func policy(seed: UInt64) -> TestPolicy {
    TestPolicy { _, operation, _ in
      if operation.touches("d") { return .deny(reason: "path") }
      if operation.touches("probe") { return .allowed }
      var hash: UInt64 = seed &* 0x9E37_79B9_7F4A_7C15
      for byte in "\(operation)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      return (hash >> 20).isMultiple(of: 6) ? .deny(reason: "chance") : .allowed
    }
  }

  @Test("responses over gRPC, REST and WebChannel do not depend on denied documents")
  func programs() async throws {
    var (decisions, responses, permitted) = (0, 0, 0)
    for seed in Self.seed..<Self.seed + Self.programCount {
      let policies = (0..<2).map { _ in Self.policy(seed: seed) }
      try await FirestoreTestPort.with(store: try MemoryStore(), policy: policies[0]) { first in
        try await FirestoreTestPort.with(store: try MemoryStore(), policy: policies[1]) { second in
          let run = try await run(seed, on: [first, second])
          responses += run.responses
          permitted += run.permitted
        }
      }
      for policy in policies { decisions += policy.operations.withLock { $0.count } }
    }
    print(
      "access: \(Self.programCount) programs over gRPC, REST and WebChannel, \(decisions) decisions, "
        + "\(responses) responses, \(permitted) permitted")
    #expect(permitted > 0 && permitted < responses)
  }

  private func run(
    _ seed: UInt64, on ports: [FirestoreTestPort]
  ) async throws -> (responses: Int, permitted: Int) {
    var program = TransportProgram(seed: seed)
    var random = SeededGenerator(seed: seed &+ 0xACCE)
    var permitted = 0
    let listeners = try await ports.async { try await ListenClient($0.client) }
    for listener in listeners { listener.isRecording = true }
    let steps = 40
    for step in 0..<steps {
      try await write(step, &random, on: ports)
      let request = program.request()
      let overGRPC = random.below(2) == 0
      let outcomes = try await ports.async { port in
        let text =
          overGRPC
          ? try await request.outcome(overGRPC: port.client)
          : try await request.outcome(overREST: port.port.port)
        try await rollBack(text, on: port)
        return TransportRequest.normalised(text)
      }
      expectEqual(
        outcomes, "seed \(seed), step \(step), \(overGRPC ? "gRPC" : "REST"): \(request)", sent: "\(request)")
      if !outcomes[0].contains("ermission") { permitted += 1 }
      if step % 4 == 0 {
        let path = program.documentPath()
        for listener in listeners { try await listener.add(Int32(2 * step + 2), documents: [path]) }
      }
      if step % 4 == 1 {
        var target = Google_Firestore_V1_Target()
        target.targetID = Int32(2 * step + 2)
        target.query.parent = FirestoreTestServer.documents
        target.query.structuredQuery = try .init(jsonString: program.query())
        for listener in listeners { try await listener.add(target) }
      }
      if step % 8 == 2 {
        let path = program.documentPath()
        let texts = try await ports.async { try await listenMessages(path, on: $0) }
        expectEqual(texts, "seed \(seed), step \(step), WebChannel: \(path)")
      }
    }
    try await expectEqualListeners(listeners, on: ports, seed)
    return (steps, permitted)
  }

  /// Rolls back the transaction that a response names.
  private func rollBack(_ response: String, on port: FirestoreTestPort) async throws {
    guard let match = response.firstMatch(of: /"transaction":\s*"([^"]+)"/),
      let transaction = Data(base64Encoded: String(match.output.1))
    else { return }
    var request = Google_Firestore_V1_RollbackRequest()
    request.database = FirestoreTestServer.database
    request.transaction = transaction
    let _: Google_Protobuf_Empty = try await port.client.unary("Rollback", request)
  }

  /// Writes the same permitted documents on both servers, and different denied documents.
  private func write(_ step: Int, _ random: inout SeededGenerator, on ports: [FirestoreTestPort]) async throws
  {
    let shared: [Proto.Write] = ["c/a", "c/b", "c/a/s/x", "e/a"].compactMap { path in
      switch random.below(4) {
      case 0: .set(path, ["n": .int(Int64(random.below(4)))])
      case 1 where step > 10: .delete(path)
      default: nil
      }
    }
    for (number, port) in ports.enumerated() {
      var writes = shared
      for path in ["d/d1", "d/d2", "d/zebra\(number)", "d/d1/s/zebra\(number)"] where random.below(3) == 0 {
        writes.append(
          random.below(3) == 0
            ? .delete(path)
            : .set(path, ["n": .int(Int64(random.below(4))), Self.marker: .text("\(Self.marker)\(number)")]))
      }
      var request = Google_Firestore_V1_CommitRequest()
      request.database = FirestoreTestServer.database
      request.writes = writes
      // A lock that a denied request kept would fail this commit.
      let _: Google_Firestore_V1_CommitResponse = try await port.client.unary(
        "Commit", request, metadata: GRPCTestClient.administrator)
    }
  }

  /// Returns the messages of a Listen stream over WebChannel until its target is current or removed.
  private func listenMessages(_ path: String, on port: FirestoreTestPort) async throws -> String {
    let (client, _) = try await WebChannelTestClient.handshake(
      port.port.port, "Listen", [WebChannelTestClient.listen(to: path, 2)], headers: "")
    let back = try await client.open(after: 0)
    var text = ""
    while let array = try await back.nextMessage() {
      // The number of a message is dropped, because it depends on time: it also counts earlier noops, the empty messages
      // that keep the response open.
      text += array.text.drop { $0 != " " } + "\n"
      if array.text.contains("REMOVE") || array.text.contains("CURRENT") { break }
    }
    await back.close()
    return TransportRequest.normalised(text)
  }

  /// Waits until every listener has received all changes, and compares the listeners' documents.
  private func expectEqualListeners(
    _ listeners: [ListenClient], on ports: [FirestoreTestPort], _ seed: UInt64
  ) async throws {
    var states: [String] = []
    for (listener, port) in zip(listeners, ports) {
      try await listener.add(1001, documents: ["probe/x"])
      try await write("probe/x", 1, on: port)
      let last = try await listener.snapshot { $0.targets[1001]?["probe/x"] == 1 }
      let causes = listener.removed.mapValues { "\($0.code) \($0.message)" }
      states.append(
        "\(last.targets.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.sorted { $0.key < $1.key })" }) "
          + "\(causes.sorted { $0.key < $1.key }) \(listener.filters.count)")
      #expect(!listener.recorded.contains { $0.contains(Self.marker) }, "seed \(seed)")
      try await listener.call.reset()
    }
    expectEqual(states, "seed \(seed), listeners")
  }

  private func write(_ path: String, _ value: Int64, on port: FirestoreTestPort) async throws {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = FirestoreTestServer.database
    request.writes = [.set(path, ["n": .int(value)])]
    let _: Google_Firestore_V1_CommitResponse = try await port.client.unary(
      "Commit", request, metadata: GRPCTestClient.administrator)
  }

  /// Checks that both outcomes are the same and show nothing of the denied documents, apart from names that the client sent.
  private func expectEqual(_ outcomes: [String], _ context: String, sent: String = "") {
    #expect(outcomes[0] == outcomes[1], "\(context)")
    for outcome in outcomes { #expect(markedWords(outcome).isSubset(of: markedWords(sent)), "\(context)") }
  }

  /// The words of a text that contain the marker of denied documents.
  private func markedWords(_ text: String) -> Set<Substring> {
    Set(text.split { !$0.isLetter && !$0.isNumber }.filter { $0.contains(Self.marker) })
  }
}

extension Array {
  /// The results of an asynchronous closure for each element, one after the other.
  fileprivate func async<Result>(_ body: (Element) async throws -> Result) async rethrows -> [Result] {
    var results: [Result] = []
    for element in self { results.append(try await body(element)) }
    return results
  }
}
