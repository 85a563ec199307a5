// What the tests of the client share: databases of their own, and waiting for events with a deadline.

import Dispatch
import FirebaseCore
import Foundation
import HearthServer
import Locking
import Testing

@testable import FirebaseDatabase

/// What did not arrive in time.
struct Overdue: Error, CustomStringConvertible {
  let description: String
}

/// Collects what callbacks deliver, and lets a test wait for it.
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

  /// Everything recorded so far.
  var recorded: [Element] { all.withLock { $0 } }

  /// The first element, from now on or already waiting, that fits.
  func first(
    within seconds: Double = 60, _ description: String = "an event",
    where fits: @escaping @Sendable (Element) -> Bool
  ) async throws -> Element {
    let stream = stream
    return try await within(seconds, description) {
      for await element in stream where fits(element) { return element }
      throw Overdue(description: "the stream ended before \(description)")
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

/// Runs work with a deadline.
func within<T: Sendable>(
  _ seconds: Double = 60, _ description: String = "the work", _ work: @escaping @Sendable () async throws -> T
) async throws -> T {
  try await withThrowingTaskGroup(of: T.self) { group in
    group.addTask { try await work() }
    group.addTask {
      try await Task.sleep(for: .seconds(seconds))
      throw Overdue(description: "\(description) did not come within \(seconds) s")
    }
    defer { group.cancelAll() }
    guard let result = try await group.next() else { throw Overdue(description: description) }
    return result
  }
}

/// One app with its database, on a queue of its own.
struct Client {
  let app: FirebaseApp
  let database: Database
  let queue = DispatchQueue(label: "callbacks")

  /// A client of a server at a port of this machine.
  init(port: Int, namespace: String = "demo-\(UUID().uuidString.prefix(8).lowercased())") throws {
    try self.init(url: "http://127.0.0.1:\(port)?ns=\(namespace)")
  }

  /// A client of the database at a URL.
  init(url: String) throws {
    let name = "client-\(UUID().uuidString)"
    let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
    FirebaseApp.configure(name: name, options: options)
    app = try #require(FirebaseApp.app(name: name))
    database = Database.database(app: app, url: url)
    database.callbackQueue = queue
  }

  /// A client that reaches nobody.
  static func alone() throws -> Client {
    let client = try Client(port: 9)
    client.database.goOffline()
    return client
  }

  var ref: DatabaseReference { database.reference() }

  func close() async {
    _ = await app.delete()
  }
}

/// An event as the tests compare them.
struct Seen: Equatable, Sendable, CustomStringConvertible {
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
    self.init(type, snapshot.key, text(snapshot.value), after: previous)
  }

  var description: String { "\(type) \(key)=\(value) after \(previous ?? "-")" }
}

/// A value as canonical JSON text.
func text(_ value: Any?) -> String {
  guard let value, !(value is NSNull) else { return "null" }
  let data = try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed])
  return data.map { String(decoding: $0, as: UTF8.self) } ?? "?"
}

extension DatabaseQuery {
  /// Records all five kinds of events.
  func recordAll() -> Recorder<Seen> {
    let recorder = Recorder<Seen>()
    for type in [DataEventType.childRemoved, .childAdded, .childMoved, .childChanged, .value] {
      observe(type, andPreviousSiblingKeyWith: { recorder.record(Seen(type, $0, $1)) })
    }
    return recorder
  }

  /// Records values as text.
  func recordValues() -> Recorder<String> {
    let recorder = Recorder<String>()
    observe(
      .value, with: { recorder.record(text($0.value)) }, withCancel: { recorder.record("cancelled: \($0)") })
    return recorder
  }
}

// The forms without an answer, which Swift does not offer by their own names where `await` is allowed.
extension DatabaseReference {
  func put(_ value: Any?) { setValue(value) }
  func put(_ value: Any?, priority: Any?) { setValue(value, andPriority: priority) }
  func merge(_ values: [AnyHashable: Any]) { updateChildValues(values) }
  func drop() { removeValue() }
  func transact(_ block: @escaping (MutableData) -> TransactionResult) { runTransactionBlock(block) }
}
