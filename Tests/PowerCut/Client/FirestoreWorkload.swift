// The workload of a client of the Firestore SDK: batches with the numbers 1, 2, 3… in order. Each batch
// writes an entry and the number of the last entry. A batch that the cache rejects is written again, so that
// no entry is missing.

import Dispatch
import FirebaseCore
import FirebaseFirestore
import Foundation

/// One client with a cache on disk.
struct FirestoreWorkload {
  private let log: ClientLogWriter
  private let firestore: Firestore

  /// Makes the client, which opens the cache at its first use.
  init?(_ log: ClientLogWriter) {
    self.log = log
    let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
    options.projectID = "demo-crash"
    FirebaseApp.configure(name: "crash", options: options)
    guard let app = FirebaseApp.app(name: "crash") else { return nil }
    firestore = Firestore.firestore(app: app)
    firestore.persistenceErrorHandler = { log.append("failed \(($0 as NSError).code)") }
    let settings = firestore.settings
    settings.dispatchQueue = DispatchQueue(label: "callbacks")
    firestore.settings = settings
    firestore.useEmulator(withHost: "127.0.0.1", port: 9)
    firestore.disableNetwork(completion: nil)
  }

  private var last: DocumentReference { firestore.document("state/last") }

  private static func number(_ document: DocumentSnapshot?) -> Int? { document?.get("number") as? Int }

  /// Makes `count` writes. Their numbers follow the number of the last write in the cache.
  func write(_ count: Int) async {
    let (events, continuation) = AsyncStream<Int?>.makeStream()
    let listener = last.addSnapshotListener { [log] document, _ in
      guard let number = FirestoreWorkload.number(document) else { return }
      log.recordEvent(of: number)
      continuation.yield(number)
    }
    // This read completes after the listener's first event.
    _ = try? await last.getDocument(source: .cache)
    var iterator = events.makeAsyncIterator()
    let first = log.lastSeen + 1
    for number in first..<first + count {
      update(number) { continuation.yield(nil) }
      while let event = await iterator.next() {
        if event == number { break }
        guard event == nil else { continue }
        // The cache is moving to another file, or its disk failed.
        try? await Task.sleep(nanoseconds: 20_000_000)
        update(number) { continuation.yield(nil) }
      }
    }
    listener.remove()
  }

  /// Writes one batch. This is a synchronous function, because asynchronous code would call the overload of
  /// `commit` that waits for the server.
  private func update(_ number: Int, onRejection: @escaping @Sendable () -> Void) {
    log.append("made \(number)")
    let batch = firestore.batch()
    batch.setData(
      ["number": number, "text": FirestoreWorkload.text(number)],
      forDocument: firestore.document("log/n\(number)"))
    batch.setData(["number": number], forDocument: last)
    batch.commit { error in if error != nil { onRejection() } }
  }

  /// The text of an entry, of up to 6,000 bytes.
  private static func text(_ number: Int) -> String {
    String(repeating: "\(number % 10)", count: number &* 7_919 % 6_000)
  }

  /// Records the entries that the cache has, and the number of the last batch.
  func read() async {
    let entries = try? await firestore.collection("log").getDocuments(source: .cache)
    for entry in entries?.documents ?? [] {
      let number = entry.get("number") as? Int ?? -1
      let isRight =
        entry.documentID == "n\(number)" && entry.get("text") as? String == FirestoreWorkload.text(number)
      log.append(isRight ? "restored \(number)" : "wrong entry \(entry.documentID)")
    }
    if let number = FirestoreWorkload.number(try? await last.getDocument(source: .cache)) {
      log.append("last \(number)")
    }
    if entries != nil { log.append("read 1") }
  }
}
