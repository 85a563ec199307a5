// The denial logs of a server, and the observers that fill them.

import Access
import FirestoreEngine
import FirestoreModel
import SecurityRules

/// The denial logs of both products.
struct ServerDenials: Sendable {
  let firestore = DenialLogs<DatabaseName>()
  let realtime = DenialLogs<String>()
  /// The feed of the emulator; nil in production, which records no coverage either.
  let feed: RequestFeed?

  /// - Parameter isEmulator: whether coverage and the request feed are recorded.
  init(isEmulator: Bool) { feed = isEmulator ? RequestFeed(now: Self.now) : nil }

  private static let now: @Sendable () -> Int64 = { SystemClock().wallTime() }

  /// Observes the decisions about a Firestore database.
  func observer(of database: DatabaseName) -> any DecisionObserver<FirestoreAccess> {
    FirestoreDecisionObserver(database, logs: firestore, feed: feed, now: Self.now)
  }

  /// Observes the decisions about a Realtime Database.
  func observer(ofNamespace namespace: String) -> any DecisionObserver<RealtimeAccess> {
    RealtimeDecisionObserver(namespace, logs: realtime, recordsCoverage: feed != nil, now: Self.now)
  }
}
