// Tests that clients converge with the server. Each seed makes a program, a random sequence of steps on several
// clients with persistence: writes, updates, increments, transactions, queries, offline periods, kills with a restart
// from disk, and restarts of the server. Each client's clock is wrong by up to a day, and by a different time after
// each kill.
//
// At the end all clients and their files must equal the server. No write may be lost or applied twice,
// timestamps must be the server's, and the events of each observer must rebuild the value.
//
// The environment variable HEARTH_CONVERGENCE sets the number of programs, and HEARTH_CONVERGENCE_SEED the first
// seed. `make convergence` runs many programs.

import FirebaseCore
import Foundation
import HearthServer
import Locking
import RealtimeModel
import ServerFixture
import Testing

@testable import FirebaseDatabase

/// Rebuilds a location's children from events.
private final class Mirror: Sendable {
  private let children = Guarded<[String: String]>([:])
  private let values = Recorder<String>()

  init(_ query: DatabaseQuery) {
    let children = children
    for type in [DataEventType.childAdded, .childChanged] {
      query.observe(
        type,
        with: { snapshot in
          children.withLock { $0[snapshot.key] = canonicalJSON(snapshot.value) }
        })
    }
    query.observe(
      .childRemoved,
      with: { snapshot in
        children.withLock { _ = $0.removeValue(forKey: snapshot.key) }
      })
    let values = values
    query.observe(.value, with: { values.record(canonicalJSON($0.value)) })
  }

  /// Waits for a value event, and returns the children that the child events have built.
  func children(when value: String) async throws -> [String: String] {
    _ = try await values.first(within: 60, "the value \(value)") { $0 == value }
    return children.withLock { $0 }
  }
}

/// A client with its file and its mirrors, and the values that the server must have at the end.
private struct Participant {
  let name: String
  var folder: DataFolder
  var client: Client
  var mirrors: [Mirror] = []
  var isOnline = true
  /// Whether the client has written a timestamp.
  var hasTime = false
  /// The expected values of the locations that only this client writes.
  var expected: [String: Int] = [:]
  /// The sum of the increments of this client.
  var sum = 0
  /// Whether an increment has no response yet.
  var hasPendingIncrement = false
  var nextValue = 0
}

/// One random program.
private struct Program {
  let seed: UInt64
  var random: SplitMix
  let namespace: String
  let data: DataFolder
  var server: TestServer
  /// The relay through which the clients connect to the server. A restarted server has another port, because
  /// another process may have taken the old one.
  let relay: Relay
  var participants: [Participant] = []
  let committed = Guarded(0)
  let uncertain = Guarded(0)
  let began = Repository.milliseconds

  static func run(_ seed: UInt64) async throws {
    let data = try DataFolder()
    defer { data.remove() }
    let server = try await TestServer.start(directory: data.url.appendingPathComponent("server").path)
    var program = Program(
      seed: seed, random: SplitMix(seed: seed), namespace: "conv-\(seed)", data: data, server: server,
      relay: try await Relay.start(to: server.port))
    for number in 0..<3 {
      let (name, folder) = ("c\(number)-\(seed)", try DataFolder())
      program.participants.append(
        Participant(name: name, folder: folder, client: try program.makeClient(name, folder)))
      program.observe(number)
    }
    for _ in 0..<Int.random(in: 20...60, using: &program.random) { try await program.step() }
    try await program.finish()
    for participant in program.participants {
      await participant.client.close()
      participant.folder.remove()
    }
    await program.relay.stop()
    await program.server.server.stop()
  }

  private mutating func makeClient(_ name: String, _ folder: DataFolder) throws -> Client {
    let skew = Int64.random(in: -86_400_000...86_400_000, using: &random)
    return try Client.persistent(
      in: folder, name: name, port: relay.port, namespace: namespace, skew: skew)
  }

  private mutating func observe(_ number: Int) {
    let root = participants[number].client.ref.child("data")
    participants[number].mirrors = [
      Mirror(root), Mirror(root.queryLimited(toLast: 2)), Mirror(root.child("c0").queryOrderedByValue()),
    ]
  }

  private mutating func step() async throws {
    let number = Int.random(in: 0..<participants.count, using: &random)
    let client = participants[number].client
    let ownData = client.ref.child("data/c\(number)")
    participants[number].nextValue += 1
    let value = participants[number].nextValue
    let key = "k\(Int.random(in: 0..<5, using: &random))"
    switch Int.random(in: 0..<15, using: &random) {
    case 0..<4:
      ownData.child(key).put(value)
      participants[number].expected[key] = value
    case 4:
      ownData.child(key).remove()
      participants[number].expected[key] = nil
    case 5, 6:
      let other = "k\(5 + Int.random(in: 0..<3, using: &random))"
      ownData.merge([key: value, other: NSNull()])
      participants[number].expected[key] = value
      participants[number].expected[other] = nil
    case 7:
      client.ref.child("sums/c\(number)").put(ServerValue.increment(NSNumber(value: value)))
      participants[number].sum += value
      participants[number].hasPendingIncrement = true
    case 8: transact(client)
    case 9:
      try await awaitIncrements(number)
      client.database.goOffline()
      participants[number].isOnline = false
    case 10, 11:
      client.database.goOnline()
      participants[number].isOnline = true
    case 12: try await kill(number)
    case 13:
      client.ref.child("data/times/c\(number)").put(ServerValue.timestamp())
      participants[number].hasTime = true
    default:
      if Int.random(in: 0..<3, using: &random) == 0 { try await restartServer() }
    }
  }

  private func transact(_ client: Client) {
    let (committed, uncertain) = (committed, uncertain)
    uncertain.withLock { $0 += 1 }
    client.ref.child("shared").runTransactionBlock({ data in
      data.value = (data.value as? Int ?? 0) + 1
      return .success(withValue: data)
    }) { error, isCommitted, _ in
      // After a lost connection or after the app was deleted, the outcome is unknown.
      if error == nil { uncertain.withLock { $0 -= 1 } }
      if isCommitted { committed.withLock { $0 += 1 } }
    }
  }

  /// Waits for the responses to increments before the client's connection ends. The protocol repeats a write
  /// whose response was lost, and an increment would then be applied twice. Increments that were made offline
  /// have not been sent.
  private mutating func awaitIncrements(_ number: Int) async throws {
    let participant = participants[number]
    guard participant.isOnline, participant.hasPendingIncrement else { return }
    _ = try await within(60, "seed \(seed): the responses to increments") {
      try await participant.client.ref.child("marker").setValue(1)
    }
    participants[number].hasPendingIncrement = false
  }

  /// Kills a client, and starts it again from the file that it had at that moment.
  private mutating func kill(_ number: Int) async throws {
    try await awaitIncrements(number)
    let old = participants[number]
    let copy = try await old.client.killedData(from: old.folder)
    await old.client.close()
    old.folder.remove()
    participants[number].folder = copy
    participants[number].client = try makeClient(old.name, copy)
    if !old.isOnline { participants[number].client.database.goOffline() }
    observe(number)
  }

  private mutating func restartServer() async throws {
    for number in participants.indices { try await awaitIncrements(number) }
    await server.server.stop()
    server = try await TestServer.start(directory: data.url.appendingPathComponent("server").path)
    relay.redirect(to: server.port)
    for participant in participants where participant.isOnline {
      participant.client.database.goOffline()
      participant.client.database.goOnline()
    }
  }

  // MARK: The end

  private mutating func finish() async throws {
    for participant in participants { participant.client.database.goOnline() }
    for (number, participant) in participants.enumerated() {
      _ = try await within(60, "seed \(seed): the acknowledgement of client \(number)") {
        try await participant.client.ref.child("data/end\(number)").setValue(number)
      }
    }
    let reader = try server.clients(1, in: namespace)[0]
    let stored = try await reader.ref.child("data").getData()
    for (number, participant) in participants.enumerated() {
      let actual = stored.childSnapshot(forPath: "c\(number)").value as? [String: Int] ?? [:]
      #expect(actual == participant.expected, "seed \(seed), client \(number)")
      let sum = try await reader.ref.child("sums/c\(number)").getData().value as? Int ?? 0
      #expect(sum == participant.sum, "seed \(seed), client \(number): increments")
    }
    let times = stored.childSnapshot(forPath: "times").value as? [String: Int64] ?? [:]
    let written = participants.indices.filter { participants[$0].hasTime }.map { "c\($0)" }
    #expect(times.keys.sorted() == written, "seed \(seed): timestamps")
    #expect(times.values.allSatisfy((began...Repository.milliseconds).contains), "seed \(seed): \(times)")
    let all = canonicalJSON(stored.value)
    for (number, participant) in participants.enumerated() {
      let children = try await participant.mirrors[0].children(when: all)
      let expected = (stored.value as? [String: Any] ?? [:]).mapValues { canonicalJSON($0) }
      #expect(children == expected, "seed \(seed), client \(number): events")
      let last = canonicalJSON(try await reader.ref.child("data").queryLimited(toLast: 2).getData().value)
      let window = try await participant.mirrors[1].children(when: last)
      #expect(window.count == 2, "seed \(seed), client \(number): window")
      _ = try await participant.mirrors[2].children(
        when: canonicalJSON(stored.childSnapshot(forPath: "c0").value))
    }
    let count = try await reader.ref.child("shared").getData().value as? Int ?? 0
    let committedCount = committed.withLock { $0 }
    #expect(
      (committedCount...(committedCount + uncertain.withLock { $0 })).contains(count),
      "seed \(seed): transactions")
    await reader.close()
    for participant in participants { try await checkFile(of: participant, all) }
  }

  /// Starts a client again without a connection. It must show the server's value and have no pending writes.
  private mutating func checkFile(of participant: Participant, _ all: String) async throws {
    let copy = try await participant.client.copyData(from: participant.folder)
    defer { copy.remove() }
    await participant.client.close()
    let restarted = try makeClient(participant.name, copy)
    restarted.database.goOffline()
    let value = try await restarted.ref.child("data").recordValues().next()
    #expect(value == all, "seed \(seed), \(participant.name): file")
    #expect(await restarted.pendingWriteCount() == 0, "seed \(seed), \(participant.name)")
    await restarted.close()
  }
}

extension Client {
  /// Ends the connection and copies the data directory in one call on the client's queue. The copy contains the files
  /// that remain after a kill at this time.
  fileprivate func killedData(from folder: DataFolder) async throws -> DataFolder {
    let copy = try DataFolder()
    let repository = ref.repository
    await withCheckedContinuation { continuation in
      Repository.queue.async {
        repository.connection.interrupt(.user, at: Repository.uptime)
        repository.flush()
        try? FileManager.default.removeItem(at: copy.url)
        try? FileManager.default.copyItem(at: folder.url, to: copy.url)
        continuation.resume()
      }
    }
    return copy
  }
}

@Suite("Convergence", .serialized, .timeLimit(.minutes(60)))
struct ConvergenceTests {
  private static func environmentNumber(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
  }

  private static let seeds: Range<UInt64> = {
    let first = UInt64(environmentNumber("HEARTH_CONVERGENCE_SEED") ?? 1)
    return first..<(first + UInt64(environmentNumber("HEARTH_CONVERGENCE") ?? 12))
  }()

  @Test(
    "clients with offline periods, kills and restarts converge with the server, without lost or repeated writes"
  )
  func programs() async throws {
    for seed in ConvergenceTests.seeds { try await Program.run(seed) }
  }
}
