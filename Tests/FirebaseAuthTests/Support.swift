// Support for the tests: apps with separate stores, a clock that the test advances, and tokens.

import FirebaseCore
import Foundation
import Locking
import Testing

@testable import FirebaseAuth

/// The folder for the stores of this test run. It replaces the user's data directory.
let dataDirectory: String = {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("auth-\(UUID().uuidString)").path
  setenv("XDG_DATA_HOME", path, 1)
  return path
}()

/// A clock whose time changes only when the test advances it. A sleeping task resumes when its deadline is
/// reached.
final class ManualClock: Sendable {
  private struct Sleeper {
    let deadline: Date
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var now = Date()
    var sleepers: [Int: Sleeper] = [:]
    var sleepCount = 0
    var cancelled: Set<Int> = []
  }

  private let state = Guarded(State())
  /// The delays of all sleeping tasks, in order.
  let delays: AsyncStream<TimeInterval>
  private let delayContinuation: AsyncStream<TimeInterval>.Continuation

  init() {
    (delays, delayContinuation) = AsyncStream.makeStream()
  }

  var clock: AuthClock {
    AuthClock(now: { self.now }, sleep: { try await self.sleep($0) })
  }

  var now: Date { state.withLock { $0.now } }

  func advance(by seconds: TimeInterval) {
    let due = state.withLock { state in
      state.now += seconds
      let due = state.sleepers.filter { $0.value.deadline <= state.now }
      for number in due.keys { state.sleepers[number] = nil }
      return due.values.map(\.continuation)
    }
    for continuation in due { continuation.resume() }
  }

  private func sleep(_ seconds: TimeInterval) async throws {
    let number = state.withLock { state in
      state.sleepCount += 1
      return state.sleepCount
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result: Result<Void, any Error>? = state.withLock { state in
          if state.cancelled.contains(number) { return .failure(CancellationError()) }
          let deadline = state.now.addingTimeInterval(seconds)
          if deadline <= state.now { return .success(()) }
          state.sleepers[number] = Sleeper(deadline: deadline, continuation: continuation)
          return nil
        }
        if let result { continuation.resume(with: result) }
        delayContinuation.yield(seconds)
      }
    } onCancel: {
      let sleeper = state.withLock { state in
        state.cancelled.insert(number)
        return state.sleepers.removeValue(forKey: number)
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }
}

/// Makes an app with a unique name.
func makeApp(name: String = "auth-\(UUID().uuidString)", project: String = "demo-auth") throws -> FirebaseApp
{
  _ = dataDirectory
  let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
  options.projectID = project
  options.apiKey = "fake-api-key"
  FirebaseApp.configure(name: name, options: options)
  return try #require(FirebaseApp.app(name: name))
}

/// An unsigned ID token of a user, like an emulator's.
func makeToken(
  _ uid: String = "u1", issued: Date = Date(), validity: TimeInterval = 3600, claims: [String: Any] = [:]
) throws -> String {
  var payload: [String: Any] = [
    "sub": uid, "user_id": uid, "iat": Int(issued.timeIntervalSince1970),
    "exp": Int(issued.timeIntervalSince1970 + validity), "auth_time": Int(issued.timeIntervalSince1970),
    "firebase": ["sign_in_provider": "custom", "identities": [String: Any]()] as [String: Any],
  ]
  payload.merge(claims) { $1 }
  func encode(_ object: [String: Any]) throws -> String {
    try JSONSerialization.data(withJSONObject: object, options: .sortedKeys).base64EncodedString()
      .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
      .replacingOccurrences(of: "=", with: "")
  }
  return try encode(["alg": "none", "typ": "JWT"]) + "." + encode(payload) + "."
}

/// The code of an operation's error; nil if it succeeds.
func errorCode(_ operation: () async throws -> Void) async -> AuthErrorCode? {
  do {
    try await operation()
    return nil
  } catch {
    #expect(type(of: error) is NSError.Type && (error as NSError).domain == AuthErrorDomain)
    return AuthErrorCode(rawValue: (error as NSError).code)
  }
}

/// Records values from callbacks. A test can wait for them.
final class Recorder<Element: Sendable>: Sendable {
  private let stream: AsyncStream<Element>
  private let continuation: AsyncStream<Element>.Continuation

  init() {
    (stream, continuation) = AsyncStream.makeStream()
  }

  func record(_ element: Element) { continuation.yield(element) }

  func next() async -> Element? {
    var iterator = stream.makeAsyncIterator()
    return await iterator.next()
  }
}
