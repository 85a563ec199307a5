// Measures the Realtime Database SDK: `make bench-client`.
//
//   ClientBenchmarks --server HOST:PORT [--writes 100000] [--cache-mb 90] [--events 20000] [--memory-seconds 0]
//     [--memory-rate 0]
//
// A row about writes has the processor time of this process for one operation, at the start and at the end of a run. The
// ratio of the two shows whether the cost depends on the number of pending writes. Other rows compare the SDK with a bare
// part. Processor time is used because it hardly depends on other load of the machine. With
// --memory-seconds only the memory over that time is measured, at --memory-rate writes a second at most.
// XDG_DATA_HOME must name an empty directory.

import Dispatch
import FirebaseCore
import FirebaseDatabase
import Foundation

@main
struct ClientBenchmarks {
  static func main() async throws {
    let server = option("--server", "127.0.0.1:9000")
    guard let writes = Int(option("--writes", "100000")), writes >= 1_000,
      let megabytes = Int(option("--cache-mb", "90")), (1...100).contains(megabytes)
    else { return say("--writes is at least 1,000, and --cache-mb is 1 to 100") }
    let memory = Int(option("--memory-seconds", "0")) ?? 0
    let rate = Int(option("--memory-rate", "0")) ?? 0
    if memory > 0 { return try await SteadyMemory(duration: memory, rate: rate, server: server).run() }
    say("| measurement | first tenth | last tenth | ratio |")
    say("|---|---|---|---|")
    for isPersistent in [false, true] {
      for isObserved in [false, true] {
        for count in [writes / 10, writes] {
          try await PendingWrites(
            count: count, server: server, isPersistent: isPersistent, isObserved: isObserved
          ).run()
        }
      }
    }
    say("| | bare | SDK | ratio |")
    say("|---|---|---|---|")
    for children in [10_000, 100_000] { try await InitialListen(children: children, server: server).run() }
    try await EventRate(count: Int(option("--events", "20000")) ?? 20_000, server: server).run()
    try await CacheStart(megabytes: megabytes, server: server).run()
  }

  static func option(_ name: String, _ fallback: String) -> String {
    let arguments = CommandLine.arguments
    guard let at = arguments.firstIndex(of: name), at + 1 < arguments.count else { return fallback }
    return arguments[at + 1]
  }

  static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }
}

/// A client with its app.
struct MeasuredClient {
  let app: FirebaseApp
  let database: Database

  init(name: String, namespace: String, server: String, isPersistent: Bool) throws {
    let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
    FirebaseApp.configure(name: name, options: options)
    guard let app = FirebaseApp.app(name: name) else { throw MeasurementFailure("no app \(name)") }
    self.app = app
    database = Database.database(app: app, url: "http://\(server)?ns=\(namespace)")
    database.callbackQueue = DispatchQueue(label: "callbacks")
    database.isPersistenceEnabled = isPersistent
    database.persistenceCacheSizeBytes = 100 << 20
    database.persistenceErrorHandler = { ClientBenchmarks.say("cache: \($0.localizedDescription)") }
  }

  /// Waits until the client has applied every earlier call.
  func settle() async {
    let state = database.reference(withPath: ".info/connected")
    _ = await state.observeSingleEventAndPreviousSiblingKey(of: .value)
  }
}

struct MeasurementFailure: Error {
  let text: String
  init(_ text: String) { self.text = text }
}

/// The seconds that work takes.
func seconds(_ work: () async throws -> Void) async rethrows -> Double {
  let start = DispatchTime.now().uptimeNanoseconds
  try await work()
  return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
}

/// The processor time in seconds that this process takes for work.
func processorSeconds(_ work: () async throws -> Void) async rethrows -> Double {
  func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
  let start = now()
  try await work()
  return now() - start
}

/// Rounds to three significant digits.
func short(_ value: Double) -> String {
  String(format: value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value)
}
