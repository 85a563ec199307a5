// Measures the Firestore SDK: `make bench-firestore-client`.
//
//   FirestoreClientBenchmarks --server HOST:PORT [--documents 100000] [--writes 10000]
//   FirestoreClientBenchmarks --first-query 100000 --state "TEXT"
//
// XDG_DATA_HOME must name an empty directory. The second form measures the first query of a new process on the cache that
// the first form left there; the row repeats TEXT, which describes the state of the file.

import Dispatch
import FirebaseCore
import FirebaseFirestore
import Foundation

@main
struct FirestoreClientBenchmarks {
  static func main() async throws {
    let server = option("--server", "127.0.0.1:8080")
    guard let documents = Int(option("--documents", "100000")), documents >= 1_000,
      let writes = Int(option("--writes", "10000")), writes >= 1_000
    else { return say("--documents and --writes are at least 1,000") }
    if let count = Int(option("--first-query", "")) {
      return try await CachedQuery(count: count).firstQuery(option("--state", "new process"))
    }
    say("| measurement | result |")
    say("|---|---|")
    // First, while the memory of the process is small.
    try await QueuedWrites(count: writes).run()
    for count in [1_000, 10_000] { try await InitialSnapshot(count: count, server: server).run() }
    try await LocalEvent(count: 1_000, server: server).run()
    try await SlowLink(count: 200, server: server).run()
    for count in [1_000, 10_000, 100_000] where count <= documents {
      try await CachedQuery(count: count).run()
    }
    try await DecodeRate(count: 10_000).run()
  }

  static func option(_ name: String, _ fallback: String) -> String {
    let arguments = CommandLine.arguments
    guard let at = arguments.firstIndex(of: name), at + 1 < arguments.count else { return fallback }
    return arguments[at + 1]
  }

  static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }

  static func row(_ measurement: String, _ result: String) { say("| \(measurement) | \(result) |") }
}

/// Creates clients, each with an app.
enum MeasuredClient {
  /// Creates a client of a server.
  ///
  /// - Parameter name: the app's name; the cache on disk belongs to it.
  static func make(
    _ name: String, server: String = "127.0.0.1:1", cache: any LocalCacheSettings & NSObjectProtocol
  ) throws -> Firestore {
    if FirebaseApp.allApps?[name] == nil {
      let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
      options.projectID = "demo-bench"
      FirebaseApp.configure(name: name, options: options)
    }
    guard let app = FirebaseApp.app(name: name) else { throw MeasurementFailure(text: "no app \(name)") }
    let firestore = Firestore.firestore(app: app)
    let settings = firestore.settings
    settings.dispatchQueue = DispatchQueue(label: "callbacks")
    settings.cacheSettings = cache
    firestore.settings = settings
    let parts = server.split(separator: ":")
    firestore.useEmulator(
      withHost: parts.first.map(String.init) ?? "127.0.0.1", port: parts.last.flatMap { Int($0) } ?? 8080)
    return firestore
  }

  static let onDisk = PersistentCacheSettings(sizeBytes: NSNumber(value: FirestoreCacheSizeUnlimited))
}

struct MeasurementFailure: Error {
  let text: String
}

/// The seconds that work takes.
func seconds(_ work: () async throws -> Void) async rethrows -> Double {
  let start = DispatchTime.now().uptimeNanoseconds
  try await work()
  return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
}

/// Rounds to three significant digits.
func short(_ value: Double) -> String {
  String(format: value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value)
}

/// The memory of this process in MiB; zero where it is unknown.
func residentMegabytes() -> Double {
  guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
  let pages = text.split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0
  return pages * 4096 / Double(1 << 20)
}

/// Queues a write without waiting for the server. In an asynchronous function Swift selects the form that waits.
func put(_ reference: DocumentReference, _ fields: [String: Any]) { reference.setData(fields) }
