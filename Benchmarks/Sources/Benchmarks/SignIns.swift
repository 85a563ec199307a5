// Measures sign-ins with a password at a production server, and the password hash alone that each sign-in needs. Also
// times commits at a steady rate while passwords are hashed.

import Foundation
import Identity
import NIOConcurrencyHelpers
import NIOCore

/// The number of clients that sign in, each with its own account.
private let clientCount = 16
private let accounts = "/identitytoolkit.googleapis.com/v1/accounts"

/// Sign-ins per second.
func signIns(_ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let (server, authPort) = try setting.startProduction(directory)
  defer { server.stop() }
  let load = try await SignInLoad.start(port: authPort, setting)
  try await Task.sleep(for: .seconds(min(1, setting.seconds / 3)))
  let processor = ProcessorTime(server)
  let before = load.tally.done.value
  let start = ContinuousClock.now
  try await Task.sleep(for: .seconds(setting.seconds))
  let count = load.tally.done.value - before
  let elapsed = (ContinuousClock.now - start).seconds
  processor.report(calls: count, in: setting)
  try await load.stop()
  return Double(count) / elapsed
}

/// Passwords verified per second in this process, by the server's hasher.
func bareHashes(_ setting: Setting) async throws -> Double {
  let hasher = PasswordHasher(.standard)
  let stored = try await hasher.hash("correct horse")
  let done = SharedCounter()
  let start = ContinuousClock.now
  let seconds = setting.seconds
  try await withThrowingTaskGroup { tasks in
    for _ in 0..<clientCount {
      tasks.addTask {
        while (ContinuousClock.now - start).seconds < seconds {
          guard try await hasher.verify("correct horse", stored) else {
            throw BenchmarkFailure("the password does not match")
          }
          done.add()
        }
      }
    }
    try await tasks.waitForAll()
  }
  return Double(done.value) / (ContinuousClock.now - start).seconds
}

/// The hashing that runs while commits are timed.
enum Hashing: Sendable {
  case none
  /// Clients sign in to the server.
  case inServer
  /// Another process hashes passwords with the server's hasher, on as many threads. The commits then show the effect of the
  /// processor time alone, which no server can avoid on this machine: decision 0040.
  case inOtherProcess
}

/// The median and the 99th percentile of the time of durable commits in microseconds, during hashing or without it.
func commitTimes(_ setting: Setting, during hashing: Hashing) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let (server, authPort) = try setting.startProduction(directory)
  defer { server.stop() }
  let probe = try CommitProbe(server, setting)
  defer { probe.stop() }
  let load = hashing == .inServer ? try await SignInLoad.start(port: authPort, setting) : nil
  let other = hashing == .inOtherProcess ? try setting.startBare("hashes") : nil
  defer { other?.stop() }
  let times = try await probe.times(seconds: setting.seconds)
  try await load?.stop()
  return [percentile(times, 0.5), percentile(times, 0.99)]
}

/// Verifies passwords until the process ends. Prints a line as servers do, with a number that is not used.
func hashForever() async throws {
  let hasher = PasswordHasher(.standard)
  let stored = try await hasher.hash("correct horse")
  printLine("port 1")
  try await withThrowingTaskGroup { tasks in
    for _ in 0..<clientCount {
      tasks.addTask { while try await hasher.verify("correct horse", stored) {} }
    }
    try await tasks.waitForAll()
  }
}

/// Clients that sign in again and again.
private struct SignInLoad {
  let tally = UnaryTally()
  private var clients: [HTTPLoad] = []

  static func start(port: Int, _ setting: Setting) async throws -> SignInLoad {
    let bodies = (0..<clientCount).map { number in
      #"{"email":"user-\#(number)@example.com","password":"correct horse","returnSecureToken":true}"#
    }
    let created = UnaryTally()
    let creation = try await HTTPLoad.start(
      port: port, on: setting.group, path: accounts + ":signUp?key=bench", bodies: bodies, repeats: false,
      tally: created)
    try await waitUntil("accounts were not created: \(created.failure)") {
      created.done.value == clientCount || created.failed.value > 0
    }
    created.stop()
    await creation.close()
    guard created.failed.value == 0 else {
      throw BenchmarkFailure("accounts were not created: \(created.failure)")
    }
    var load = SignInLoad()
    for body in bodies {
      load.clients.append(
        try await HTTPLoad.start(
          port: port, on: setting.group, path: accounts + ":signInWithPassword?key=bench", bodies: [body],
          repeats: true, tally: load.tally))
    }
    return load
  }

  /// Closes the connections.
  /// - Throws: ``BenchmarkFailure`` if no sign-in succeeded, or any failed.
  func stop() async throws {
    tally.stop()
    for client in clients { await client.close() }
    guard tally.failed.value == 0, tally.done.value > 0 else {
      throw BenchmarkFailure("\(tally.failed.value) sign-ins failed: \(tally.failure)")
    }
  }
}

/// Durable commits of new documents at a steady rate.
enum SteadyCommits {
  private static let perSecond = 500
  private static let connectionCount = 10

  /// The time of each commit in microseconds, after a warm-up of a third of the time.
  static func times(_ server: ChildProcess, _ setting: Setting, seconds: Double) async throws -> [Double] {
    try await times(port: server.port, on: setting.group, seconds: seconds)
  }

  /// The same on a port and event loops.
  static func times(port: Int, on group: any EventLoopGroup, seconds: Double) async throws -> [Double] {
    let requests = try CommitRequests(count: 512)
    let run = Int.random(in: 0..<(1 << 20)) << 42
    var opened: [GRPCConnection] = []
    for _ in 0..<connectionCount {
      opened.append(try await GRPCConnection.connect(port: port, on: group))
    }
    let connections = opened
    let times = NIOLockedValueBox<[Double]>([])
    let failure = NIOLockedValueBox<String?>(nil)
    let sent = SharedCounter()
    let begin = NIODeadline.now()
    // Sends all commits that are due, so that late ticks do not lower the rate.
    let ticks = group.any().scheduleRepeatedTask(
      initialDelay: .zero, delay: .microseconds(500)
    ) { _ in
      let due = Int((NIODeadline.now() - begin).nanoseconds) * perSecond / 1_000_000_000
      while sent.value < due {
        let number = sent.value
        sent.add()
        let start = NIODeadline.now()
        connections[number % connectionCount].call(
          path: "/google.firestore.v1.Firestore/Commit", body: requests.request(run | number)
        ).whenComplete { result in
          guard case .success(let answer) = result, answer.status == 0 else {
            return failure.withLockedValue { $0 = "a commit failed: \(result)" }
          }
          let elapsed = Double((NIODeadline.now() - start).nanoseconds) / 1000
          times.withLockedValue { $0.append(elapsed) }
        }
      }
    }
    try await Task.sleep(for: .seconds(min(1, seconds / 3)))
    times.withLockedValue { $0.removeAll() }
    try await Task.sleep(for: .seconds(seconds))
    let measured = times.withLockedValue { $0 }
    ticks.cancel()
    for connection in connections { await connection.close() }
    // The last commits end with their connections.
    guard measured.count >= Int(seconds * Double(perSecond) * 0.5) else {
      throw BenchmarkFailure(failure.withLockedValue { $0 } ?? "only \(measured.count) commits were answered")
    }
    return measured
  }
}
