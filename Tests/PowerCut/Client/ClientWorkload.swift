// The workload of a client of the Realtime Database SDK: updates with the numbers 1, 2, 3… in order. Each update writes
// an entry and the number of the last entry.

import Dispatch
import FirebaseCore
import FirebaseDatabase
import Foundation

/// One client with a cache on disk.
struct ClientWorkload {
  private let log: ClientLogWriter
  private let database: Database

  /// Makes the client, which reads the cache at its first use.
  init?(_ log: ClientLogWriter) {
    self.log = log
    FirebaseApp.configure(
      name: "crash", options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    guard let app = FirebaseApp.app(name: "crash") else { return nil }
    database = Database.database(app: app, url: "http://127.0.0.1:9?ns=crash")
    database.callbackQueue = DispatchQueue(label: "callbacks")
    database.isPersistenceEnabled = true
    database.persistenceErrorHandler = { log.append("failed \(($0 as NSError).code)") }
    database.goOffline()
  }

  /// Makes `count` writes in bursts of up to eight. Their numbers follow the number of the last write in the cache.
  func write(_ count: Int) async {
    let (events, continuation) = AsyncStream<Int>.makeStream()
    observeLast {
      log.recordEvent(of: $0)
      continuation.yield($0)
    }
    await waitForEvents()
    let first = log.lastSeen + 1
    var iterator = events.makeAsyncIterator()
    var next = first
    while next < first + count {
      let end = min(next + Int.random(in: 1...8), first + count)
      for number in next..<end { update(number) }
      while let shown = await iterator.next(), shown < end - 1 {}
      next = end
    }
  }

  /// Makes one write. This is a synchronous function, because asynchronous code would call the overload of
  /// `updateChildValues` that waits for the server.
  private func update(_ number: Int) {
    log.append("made \(number)")
    database.reference().updateChildValues([
      "log/n\(number)": ["number": number, "text": ClientWorkload.text(number)], "last": number,
    ])
  }

  /// The text of an entry, of up to 6,000 bytes.
  private static func text(_ number: Int) -> String {
    String(repeating: "\(number % 10)", count: number &* 7_919 % 6_000)
  }

  private func observeLast(_ receive: @escaping @Sendable (Int) -> Void) {
    database.reference(withPath: "last").observe(
      .value, with: { if let number = $0.value as? Int { receive(number) } })
  }

  /// Records the entries that the cache has, and the number of the last update.
  func read() async {
    database.reference(withPath: "log").observe(
      .childAdded,
      with: { [log] entry in
        let number = entry.childSnapshot(forPath: "number").value as? Int ?? -1
        let text = entry.childSnapshot(forPath: "text").value as? String ?? ""
        log.append(
          entry.key == "n\(number)" && text == ClientWorkload.text(number)
            ? "restored \(number)" : "wrong entry \(entry.key)")
      })
    observeLast { [log] in log.append("last \($0)") }
    await waitForEvents()
    log.append("read 1")
  }

  /// Waits for the events of earlier calls.
  private func waitForEvents() async {
    let state = database.reference(withPath: ".info/connected")
    _ = await state.observeSingleEventAndPreviousSiblingKey(of: .value)
  }
}
