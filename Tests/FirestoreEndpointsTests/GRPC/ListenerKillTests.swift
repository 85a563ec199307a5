// Tests listeners whose server is killed repeatedly during writes. After each resume, every snapshot contains the
// results of all queries at the snapshot's time, also if responses to writes were lost.
//
// The number of kills is a tenth of the environment variable HEARTH_LISTENER_PROGRAMS, and at least three. HEARTH_SEED
// is the seed of the random choices.

import FirestoreModel
import FirestoreProtobuf
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Listeners and killed servers", .serialized, .timeLimit(.minutes(60)))
struct ListenerKillTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let kills = max(3, (environment["HEARTH_LISTENER_PROGRAMS"].flatMap { Int($0) } ?? 0) / 10)
  private static let seed = environment["HEARTH_SEED"].flatMap { UInt64($0) } ?? 1
  private static let listenerCount = 3

  @Test("Every snapshot contains all queries' results at the snapshot's time, across kills and resumes")
  func kills() async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let port = try await KilledServer.freePort()
    let writer = HistoryWriter(port: port, seed: Self.seed)
    let isDone = NIOLockedValueBox(false)
    let logs = (0..<Self.listenerCount).map { _ in NIOLockedValueBox(ListenerLog()) }
    let listenTasks = logs.map { log in
      Task { await Self.listen(port, log) { isDone.withLockedValue { $0 } } }
    }
    let writing = Task { await writer.run { isDone.withLockedValue { $0 } } }
    for round in 1...Self.kills {
      let server = try KilledServer(directory: directory, firestorePort: port)
      let commits = writer.commits + 30
      let snapshots = logs.map { log in log.withLockedValue { $0.snapshots.count } + 3 }
      try await Self.eventually("round \(round)") {
        writer.commits >= commits
          && zip(logs, snapshots).allSatisfy { log, count in
            log.withLockedValue { $0.snapshots.count } >= count
          }
      }
      await server.kill()
    }
    let finalServer = try KilledServer(directory: directory, firestorePort: port)
    let end = writer.commits + 5
    try await Self.eventually("the last writes") { writer.commits >= end }
    let time = writer.lastTime
    try await Self.eventually("all listeners have the last writes") {
      logs.allSatisfy { log in log.withLockedValue { ($0.snapshots.last?.readTime ?? 0) >= time } }
    }
    isDone.withLockedValue { $0 = true }
    await writing.value
    for task in listenTasks { task.cancel() }
    await finalServer.kill()
    for task in listenTasks { await task.value }
    let history = writer.history
    var resumes = 0
    var count = 0
    for log in logs.map({ $0.withLockedValue { $0 } }) {
      #expect(log.violations == [])
      resumes += log.resumes
      count += log.snapshots.count
      for snapshot in log.snapshots {
        let states = history.states(at: snapshot.readTime)
        for (id, documents) in snapshot.targets {
          #expect(
            states.contains { Self.result(of: id, $0) == documents },
            "target \(id) at \(snapshot.readTime): \(documents), not one of \(states.map { Self.result(of: id, $0) })"
          )
        }
      }
    }
    #expect(resumes >= Self.listenerCount * Self.kills / 2)
    print(
      "listeners over kills: \(Self.kills) kills, \(writer.commits) writes, \(count) snapshots, \(resumes) resumes"
    )
  }

  // MARK: A listener

  private struct ListenerLog {
    var snapshots: [ListenClient.Snapshot] = []
    var resumes = 0
    var violations: [String] = []
  }

  private static let queries: [Int32: Google_Firestore_V1_StructuredQuery] = [
    2: .collection("docs"), 4: .collection("docs", where: "g", is: .int(1)),
    6: .with {
      $0.from = [.with { $0.collectionID = "docs" }]
      $0.orderBy = [
        .with {
          $0.field.fieldPath = "n"
          $0.direction = .descending
        }
      ]
      $0.limit.value = 3
    },
  ]

  /// The documents of a target in a state.
  private static func result(of id: Int32, _ state: [String: Int64]) -> [String: Int64] {
    switch id {
    case 4: state.filter { $0.value % 3 == 1 }
    case 6:
      Dictionary(
        uniqueKeysWithValues: state.sorted { $0.value > $1.value }.prefix(3).map { ($0.key, $0.value) })
    default: state
    }
  }

  /// Listens until the test is done. Each stream resumes from the previous stream's last snapshot.
  private static func listen(
    _ port: Int, _ log: NIOLockedValueBox<ListenerLog>, isDone: @Sendable () -> Bool
  ) async {
    var previous: [Int32: (documents: [String: Int64], token: Data)] = [:]
    while !isDone(), !Task.isCancelled {
      do {
        let connection = try await GRPCTestClient.connect(port: port)
        do {
          let client = try await ListenClient(connection)
          for (id, query) in queries {
            try await client.add(id, query, resuming: previous[id]?.token)
            if let last = previous[id] { client.setDocuments(last.documents, for: id) }
          }
          if !previous.isEmpty { log.withLockedValue { $0.resumes += 1 } }
          while !isDone() {
            let snapshot = try await client.snapshot(within: .seconds(60))
            guard queries.keys.allSatisfy({ client.targets[$0]?.isCurrent == true }) else { continue }
            for (id, documents) in snapshot.targets {
              previous[id] = (documents, client.targets[id]?.resumeToken ?? Data())
            }
            log.withLockedValue { $0.snapshots.append(snapshot) }
          }
        } catch let violation as ProtocolViolation {
          log.withLockedValue { $0.violations.append(violation.description) }
        }
        await connection.close()
      } catch {
        // The server is down: the client waits before the next attempt.
        try? await Task.sleep(for: .milliseconds(10))
      }
    }
  }

  private static func eventually(_ description: String, _ holds: () -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(180)
    while !holds() {
      guard ContinuousClock.now < deadline else {
        Issue.record("never happened: \(description)")
        throw CancellationError()
      }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}

/// The only writer, with the history of its writes.
private final class HistoryWriter: Sendable {
  /// The sequence of states. If the response to a write was lost, the time of its commit, and thus the start of
  /// the state, is known only as a range.
  struct History {
    var entries: [(earliest: Int64, latest: Int64, state: [String: Int64])] = [(0, 0, [:])]

    /// The possible states at a time.
    func states(at time: Int64) -> [[String: Int64]] {
      var states: [[String: Int64]] = []
      for entry in entries where entry.earliest <= time {
        if entry.latest <= time { states = [] }
        states.append(entry.state)
      }
      return states
    }
  }

  private let lists: SocketLists
  private let seed: UInt64
  private let state = NIOLockedValueBox((history: History(), commits: 0))

  init(port: Int, seed: UInt64) {
    lists = SocketLists(port: port)
    self.seed = seed
  }

  var commits: Int { state.withLockedValue { $0.commits } }
  var history: History { state.withLockedValue { $0.history } }
  var lastTime: Int64 { history.entries.last?.latest ?? 0 }

  /// Sets and deletes documents in sequence. Each set writes a unique number.
  func run(isDone: @Sendable () -> Bool) async {
    var random = WorkloadRandom(seed: seed)
    var number: Int64 = 0
    while !isDone() {
      number += 1
      let path = "docs/d\(random.below(8))"
      let resource = ResourcePath(path.split(separator: "/").map(String.init))
      guard let name = DocumentName(database: Lists.database, path: resource) else { return }
      let isDelete = random.below(4) == 0
      let fields: MapValue = ["n": .integer(number), "g": .integer(number % 3)]
      var newState = history.entries.last?.state ?? [:]
      newState[path] = isDelete ? nil : number
      do {
        let time = try await lists.commit(
          [Write(isDelete ? .delete(name) : .update(name, fields: fields))], nil)
        record(time, time, newState)
      } catch {
        // The response is lost, or the server is down: the stored document shows whether the write
        // committed.
        guard let found = await storedDocument(name, isDone) else { return }
        let value: Int64? = found.document.flatMap { document in
          if case .integer(let value)? = document.fields["n"] { value } else { nil }
        }
        if value == newState[path], let document = found.document {
          record(document.updateTime.microseconds, document.updateTime.microseconds, newState)
        } else if value == nil, isDelete {
          record((history.entries.last?.latest ?? 0) + 1, found.time, newState)
        }
      }
    }
    await lists.close()
  }

  private func record(_ earliest: Int64, _ latest: Int64, _ newState: [String: Int64]) {
    state.withLockedValue { state in
      state.history.entries.append((earliest, latest, newState))
      state.commits += 1
    }
  }

  /// Returns the document after the server restarts, and a later time.
  private func storedDocument(
    _ name: DocumentName, _ isDone: @Sendable () -> Bool
  ) async -> (document: Document?, time: Int64)? {
    while true {
      do {
        let document = try await lists.get([name], nil).first
        // An empty commit returns a time after all earlier commits.
        return (document, try await lists.commit([], nil))
      } catch {
        if isDone() { return nil }
        try? await Task.sleep(for: .milliseconds(10))
      }
    }
  }
}
