// Tests repeated kills of the real server on one directory: acknowledged writes persist, atomic writes stay
// atomic, and onDisconnect operations run exactly once.
//
// `make kills N=100 SEED=7` kills the server more often. The environment variable HEARTH_KILLS is the number of kills, and
// HEARTH_KILLS_SEED is the seed of the random choices. Each run prints the number of checked writes.

import Foundation
import NIOConcurrencyHelpers
import NIOCore
import RandomModels
import RealtimeModel
import Testing

@testable import EndpointFixture

@Suite("Realtime Database through repeated kills", .timeLimit(.minutes(240)))
struct CrashLoopTests {
  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
  }

  @Test("acknowledged writes survive kills, and onDisconnect operations run exactly once")
  func kills() async throws {
    let rounds = Self.number("HEARTH_KILLS") ?? 4
    let seed = UInt64(Self.number("HEARTH_KILLS_SEED") ?? 1)
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)"
    )
    .path
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let port = try await KilledServer.freePort()
    let log = AcknowledgementLog()
    var random = RandomNodes(seed: seed)
    for round in 0..<rounds {
      let server = try KilledServer(directory: directory, databasePort: port)
      try await verify(log, port, "seed \(seed), after kill \(round)")
      let target = log.acknowledged + 20 + random.below(300)
      let seeds = (0..<6).map { _ in UInt64(random.below(1 << 30)) }
      await withTaskGroup(of: Void.self) { clients in
        for (client, seed) in seeds.enumerated() {
          clients.addTask {
            // A client runs until its first error, which means that the server was killed.
            var client = CrashLoopClient(round, client, port, log, seed)
            try? await client.run()
          }
        }
        let deadline = ContinuousClock.now + .seconds(120)
        while log.acknowledged < target, ContinuousClock.now < deadline {
          try? await Task.sleep(for: .milliseconds(2))
        }
        #expect(log.acknowledged >= target, "seed \(seed), round \(round)")
        await server.kill()
      }
    }
    let server = try KilledServer(directory: directory, databasePort: port)
    try await verify(log, port, "seed \(seed), at the end")
    await server.kill()
    print(
      "\(rounds) kills from seed \(seed): \(log.acknowledged) acknowledged writes, none lost or torn; "
        + "\(log.sessions) sessions with an onDisconnect operation, each performed once")
  }

  /// Compares the database with the clients' acknowledgements.
  private func verify(_ log: AcknowledgementLog, _ port: Int, _ context: String) async throws {
    var found: Node?
    let deadline = ContinuousClock.now + .seconds(60)
    while found == nil, ContinuousClock.now < deadline {
      found = try? await Self.read(port)
      if found == nil { try await Task.sleep(for: .milliseconds(10)) }
    }
    let tree = try #require(found, "\(context): the server does not answer")
    let recorded = log.recorded
    for (path, value) in recorded.written {
      #expect(tree.descendant(Path(path)) == .leaf(.int(value)), "\(context): \(path) was acknowledged")
    }
    tree.child("log").forEachChild { client, entries in
      // One atomic write adds an entry and increments the client's count, so both must agree.
      let count = tree.child("counters").child(client).leafValue
      #expect(
        count == .int(Int64(entries.childCount)),
        "\(context): \(client.text) counts \(String(describing: count))")
      return true
    }
    for session in recorded.registered {
      #expect(
        tree.child("ends").child(ChildKey(session)) == .leaf(.int(1)),
        "\(context): the end of \(session) was registered")
    }
    tree.child("ends").forEachChild { session, count in
      #expect(
        count == .leaf(.int(1)) && recorded.requested.contains(session.text),
        "\(context): \(session.text) ended \(count)")
      return true
    }
  }

  private static func read(_ port: Int) async throws -> Node {
    let client = try await RawClient.connect(port)
    try await client.send(
      "GET /.json?ns=crash&format=export HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nAuthorization: Bearer owner\r\nConnection: close\r\n\r\n"
    )
    let answer = try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self))
    guard answer.status == 200 else { throw RawClient.Failure.closed }
    return try Node(json: Array(answer.body.utf8), .read)
  }
}

/// The clients' acknowledgements and requests.
private final class AcknowledgementLog: Sendable {
  struct Recorded {
    /// Acknowledged writes.
    var written: [String: Int64] = [:]
    /// Sessions with an acknowledged onDisconnect operation, and all sessions that requested one.
    var registered: Set<String> = []
    var requested: Set<String> = []
  }

  private let state = NIOLockedValueBox(Recorded())

  var recorded: Recorded { state.withLockedValue { $0 } }
  var acknowledged: Int { state.withLockedValue { $0.written.count } }
  var sessions: Int { state.withLockedValue { $0.registered.count } }

  func recordRequest(_ session: String) { state.withLockedValue { _ = $0.requested.insert(session) } }
  func recordRegistration(_ session: String) { state.withLockedValue { _ = $0.registered.insert(session) } }
  func recordWrite(_ path: String, _ value: Int64) { state.withLockedValue { $0.written[path] = value } }
}

/// One client. It opens one session after the other, each with an onDisconnect operation, and writes until the server
/// is killed.
private struct CrashLoopClient {
  private let round: Int
  private let client: Int
  private let port: Int
  private let log: AcknowledgementLog
  private var random: RandomNodes

  init(_ round: Int, _ client: Int, _ port: Int, _ log: AcknowledgementLog, _ seed: UInt64) {
    self.round = round
    self.client = client
    self.port = port
    self.log = log
    random = RandomNodes(seed: seed)
  }

  /// Runs until an error shows that the server was killed.
  mutating func run() async throws {
    var last: String?
    var written = 0
    for number in 0... {
      var parameters = "v=5&ns=crash"
      // A reconnecting client names its last session, which ends if it was still open.
      if let last { parameters += "&ls=\(last)" }
      let socket = try await RawSocket.open(port: port, host: "127.0.0.1:\(port)", parameters)
      last = socket.session
      let session = "\(round)-\(client)-\(number)"
      log.recordRequest(session)
      try await socket.send(
        #"{"r":1,"a":"o","b":{"p":"/ends/\#(session)","d":{".sv":{"increment":1}}}}"#)
      try await expect(socket, #"{"r":1,"b":{"s":"ok","d":""}}"#)
      log.recordRegistration(session)
      for request in 2..<(2 + 1 + random.below(30)) {
        let entry = "r\(round)n\(written)"
        try await socket.send(
          #"{"r":\#(request),"a":"m","b":{"p":"/","d":{"log/c\#(client)/\#(entry)":\#(written),"counters/c\#(client)":{".sv":{"increment":1}}}}}"#
        )
        try await expect(socket, #"{"r":\#(request),"b":{"s":"ok","d":""}}"#)
        log.recordWrite("log/c\(client)/\(entry)", Int64(written))
        written += 1
      }
      if random.below(2) == 0 { await socket.close() }
    }
  }

  private func expect(_ socket: RawSocket, _ answer: String) async throws {
    let found = try await socket.next()
    #expect(found == answer)
  }
}
