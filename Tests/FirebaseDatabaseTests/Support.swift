// Support for the client's tests: clients with separate databases, recorders of events, and deadlines.

import Dispatch
import FirebaseCore
import Foundation
import HearthServer
import Locking
import Testing

@testable import FirebaseDatabase

/// The error of an event that did not arrive in time.
struct DeadlineExceeded: Error, CustomStringConvertible {
  let description: String
}

/// Records values from callbacks. A test can wait for them.
final class Recorder<Element: Sendable>: Sendable {
  private let stream: AsyncStream<Element>
  private let continuation: AsyncStream<Element>.Continuation
  private let all = Guarded<[Element]>([])

  init() {
    (stream, continuation) = AsyncStream.makeStream()
  }

  func record(_ element: Element) {
    all.withLock { $0.append(element) }
    continuation.yield(element)
  }

  /// All recorded values.
  var recorded: [Element] { all.withLock { $0 } }

  /// Waits for the first matching value. Values that are already queued are included.
  func first(
    within seconds: Double = 60, _ description: String = "an event",
    where matches: @escaping @Sendable (Element) -> Bool
  ) async throws -> Element {
    let stream = stream
    return try await within(seconds, description) {
      for await element in stream where matches(element) { return element }
      throw DeadlineExceeded(description: "the stream ended before \(description)")
    }
  }

  func next(within seconds: Double = 60) async throws -> Element {
    try await first(within: seconds) { _ in true }
  }

  func next(_ count: Int) async throws -> [Element] {
    var elements: [Element] = []
    for _ in 0..<count { elements.append(try await next()) }
    return elements
  }
}

/// Runs `work` and throws `DeadlineExceeded` if it takes longer than `seconds`.
///
/// Returns at the deadline even if `work` ignores its cancellation, as a write without a connection does.
func within<T: Sendable>(
  _ seconds: Double = 60, _ description: String = "the work", _ work: @escaping @Sendable () async throws -> T
) async throws -> T {
  let waiter = Guarded<CheckedContinuation<T, any Error>?>(nil)
  return try await withCheckedThrowingContinuation { continuation in
    waiter.withLock { $0 = continuation }
    let finish: @Sendable (Result<T, any Error>) -> Void = { outcome in
      let first = waiter.withLock { waiter in
        defer { waiter = nil }
        return waiter
      }
      first?.resume(with: outcome)
    }
    let workTask = Task {
      do { finish(.success(try await work())) } catch { finish(.failure(error)) }
    }
    let timer = Task {
      try await Task.sleep(for: .seconds(seconds))
      finish(.failure(DeadlineExceeded(description: "\(description) did not finish within \(seconds) s")))
      workTask.cancel()
    }
    Task {
      await workTask.value
      timer.cancel()
    }
  }
}

/// One app with its database and a separate callback queue.
struct Client {
  let app: FirebaseApp
  let database: Database
  let queue = DispatchQueue(label: "callbacks")

  /// Creates a client of a server at a local port.
  init(port: Int, namespace: String = "demo-\(UUID().uuidString.prefix(8).lowercased())") throws {
    try self.init(url: "http://127.0.0.1:\(port)?ns=\(namespace)")
  }

  /// Creates a client of the database at a URL.
  init(url: String) throws {
    let name = "client-\(UUID().uuidString)"
    let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
    FirebaseApp.configure(name: name, options: options)
    app = try #require(FirebaseApp.app(name: name))
    database = Database.database(app: app, url: url)
    database.callbackQueue = queue
  }

  /// Creates a client of the database at a URL for an app.
  init(app: FirebaseApp, url: String) {
    self.app = app
    database = Database.database(app: app, url: url)
    database.callbackQueue = queue
  }

  /// Creates a client that is offline.
  static func offline() throws -> Client {
    let client = try Client(port: 9)
    client.database.goOffline()
    return client
  }

  var ref: DatabaseReference { database.reference() }

  func close() async {
    _ = await app.delete()
  }
}

/// An event in comparable form.
struct RecordedEvent: Equatable, Sendable, CustomStringConvertible {
  let type: DataEventType
  let key: String
  let value: String
  var previous: String?

  init(_ type: DataEventType, _ key: String, _ value: String, after previous: String? = nil) {
    self.type = type
    self.key = key
    self.value = value
    self.previous = previous
  }

  init(_ type: DataEventType, _ snapshot: DataSnapshot, _ previous: String?) {
    self.init(type, snapshot.key, canonicalJSON(snapshot.value), after: previous)
  }

  var description: String { "\(type) \(key)=\(value) after \(previous ?? "-")" }
}

/// Formats a value as JSON with sorted keys.
func canonicalJSON(_ value: Any?) -> String {
  guard let value, !(value is NSNull) else { return "null" }
  let data = try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed])
  return data.map { String(decoding: $0, as: UTF8.self) } ?? "?"
}

extension DatabaseQuery {
  /// Records all five types of events.
  func recordEvents() -> Recorder<RecordedEvent> {
    let recorder = Recorder<RecordedEvent>()
    for type in [DataEventType.childRemoved, .childAdded, .childMoved, .childChanged, .value] {
      observe(type, andPreviousSiblingKeyWith: { recorder.record(RecordedEvent(type, $0, $1)) })
    }
    return recorder
  }

  /// Records values as JSON.
  func recordValues() -> Recorder<String> {
    let recorder = Recorder<String>()
    observe(
      .value, with: { recorder.record(canonicalJSON($0.value)) },
      withCancel: { recorder.record("cancelled: \($0)") })
    return recorder
  }
}

// Functions without completions. In async code Swift prefers the async overloads of the original names.
extension DatabaseReference {
  func put(_ value: Any?) { setValue(value) }
  func put(_ value: Any?, priority: Any?) { setValue(value, andPriority: priority) }
  func merge(_ values: [AnyHashable: Any]) { updateChildValues(values) }
  func remove() { removeValue() }
  func startTransaction(_ block: @escaping (MutableData) -> TransactionResult) { runTransactionBlock(block) }
}
