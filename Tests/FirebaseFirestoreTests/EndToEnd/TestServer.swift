// A test server in this process, and test clients with one app each.

import FirebaseCore
import FirebaseFirestore
import Foundation
import HearthServer
import Testing

/// A server on a free port. It can restart with the same data and port.
actor TestServer {
  private let configuration: HearthConfiguration
  private var server: HearthServer?
  private(set) var port = 0

  /// - Parameter rules: the path of a file with rules for the clients' project.
  init(
    data: String? = nil, emulator: Bool = true, tls: HearthConfiguration.TLSFiles? = nil, rules: String? = nil
  ) {
    var configuration = HearthConfiguration.forTesting(storage: data.map { .directory($0) } ?? .ephemeral)
    configuration.emulator = emulator
    configuration.tls = tls
    if let rules {
      configuration.project = "demo-sdk"
      configuration.rulesFiles = [.init(path: rules)]
    }
    self.configuration = configuration
  }

  func start() async throws {
    var configuration = configuration
    configuration.firestore.port = port
    configuration.database = nil
    let server = HearthServer(configuration)
    port = try await server.start().first?.port ?? 0
    self.server = server
  }

  func stop() async {
    await server?.stop()
    server = nil
  }
}

/// Runs a test with a new server, optionally with rules.
func withServer(
  emulator: Bool = true, rules: String? = nil, _ body: (TestServer, Int) async throws -> Void
) async throws {
  let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).rules")
  defer { try? FileManager.default.removeItem(at: file) }
  if let rules { try Data(rules.utf8).write(to: file) }
  let server = TestServer(emulator: emulator, rules: rules.map { _ in file.path })
  try await server.start()
  do {
    try await body(server, await server.port)
  } catch {
    await server.stop()
    throw error
  }
  await server.stop()
}

/// Calls setData without waiting. In an async function Swift selects the async overload.
func put(_ reference: DocumentReference, _ data: [String: Any]) { reference.setData(data) }

enum TestClient {
  private static let number = Locked(0)

  /// The folder below which the clients of this process store their caches.
  static let dataFolder: URL = {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sdk-\(UUID().uuidString)")
    setenv("XDG_DATA_HOME", folder.path, 1)
    atexit { try? FileManager.default.removeItem(at: TestClient.dataFolder) }
    return folder
  }()

  /// Makes a client with a separate app, cache and callback queue.
  static func make(port: Int, project: String = "demo-sdk", queue: DispatchQueue? = nil) -> Firestore {
    if ProcessInfo.processInfo.environment["SDK_DEBUG"] != nil { Firestore.enableLogging(true) }
    _ = dataFolder
    let count = number.change {
      $0 += 1; return $0
    }
    let options = FirebaseOptions(
      googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
    options.projectID = project
    let name = "client-\(ProcessInfo.processInfo.processIdentifier)-\(count)"
    FirebaseApp.configure(name: name, options: options)
    guard let app = FirebaseApp.app(name: name) else { preconditionFailure("the app was just configured") }
    let firestore = Firestore.firestore(app: app)
    let settings = firestore.settings
    settings.dispatchQueue = queue ?? DispatchQueue(label: "callbacks-\(count)")
    firestore.settings = settings
    firestore.useEmulator(withHost: "127.0.0.1", port: port)
    return firestore
  }

  /// Makes a new instance with the app and the cache of a terminated instance.
  static func reopen(_ old: Firestore) -> Firestore {
    let firestore = Firestore.firestore(app: old.app)
    firestore.settings = old.settings
    return firestore
  }
}

/// A value that is protected by a lock.
final class Locked<Value: Sendable>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  init(_ value: Value) { self.value = value }

  func change<T>(_ body: (inout Value) -> T) -> T {
    lock.lock()
    defer { lock.unlock() }
    return body(&value)
  }
}

/// Records elements, such as the events of a listener. A test can wait for an element.
final class Recorder<Element: Sendable>: Sendable {
  private let state = Locked<(seen: [Element], waiters: [(Int, CheckedContinuation<Void, Never>)])>(([], []))

  func add(_ element: Element) {
    let ready = state.change { state in
      state.seen.append(element)
      let ready = state.waiters.filter { $0.0 <= state.seen.count }
      state.waiters.removeAll { $0.0 <= state.seen.count }
      return ready
    }
    for (_, waiter) in ready { waiter.resume() }
  }

  var all: [Element] { state.change { $0.seen } }

  private func wait(forCount count: Int) async {
    await withCheckedContinuation { continuation in
      let isReady = state.change { state in
        if state.seen.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isReady { continuation.resume() }
    }
  }

  /// Waits for the first element that satisfies a condition, starting at index `start`.
  func first(
    from start: Int = 0, within seconds: Double = 60, where condition: @escaping @Sendable (Element) -> Bool
  ) async throws -> Element {
    try await deadline(seconds) {
      var index = start
      while true {
        await self.wait(forCount: index + 1)
        let element = self.all[index]
        if condition(element) { return element }
        index += 1
      }
    }
  }
}

/// Runs `body` and throws `DeadlineExceeded` if it takes longer than `seconds`.
func deadline<T: Sendable>(
  _ seconds: Double = 60, _ body: @escaping @Sendable () async throws -> T
) async throws -> T {
  let result = Locked<Result<T, any Error>?>(nil)
  return try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<T, any Error>) in
    let finish: @Sendable (Result<T, any Error>) -> Void = { outcome in
      let isFirst = result.change { outcomeSoFar in
        if outcomeSoFar != nil { return false }
        outcomeSoFar = outcome
        return true
      }
      if isFirst { continuation.resume(with: outcome) }
    }
    let work = _Concurrency.Task {
      do { finish(.success(try await body())) } catch { finish(.failure(error)) }
    }
    DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
      finish(.failure(DeadlineExceeded(seconds: seconds)))
      work.cancel()
    }
  }
}

struct DeadlineExceeded: Error { let seconds: Double }
