// The denial logs of a server, and the observers that fill them.

import Access
import FirestoreEngine
import FirestoreModel
import Logging
import SecurityRules

/// The denial logs of both products.
struct ServerDenials: Sendable {
  let firestore = DenialLogs<DatabaseName>()
  let realtime = DenialLogs<String>()
  /// The feed of requests that the emulator's web interface shows. Nil in production, which has no feed and records no
  /// coverage of rules.
  let feed: RequestFeed?

  private let log: Logger

  /// - Parameters:
  ///   - isEmulator: whether coverage, the request feed and the values of `debug()` are recorded.
  ///   - log: receives the values of `debug()`.
  init(isEmulator: Bool, log: Logger) {
    feed = isEmulator ? RequestFeed(now: Self.now) : nil
    self.log = log
  }

  private static let now: @Sendable () -> Int64 = { SystemClock().wallTime() }

  /// Observes the decisions about a Firestore database.
  func observer(of database: DatabaseName) -> any DecisionObserver<FirestoreAccess> {
    FirestoreDecisionObserver(
      database, logs: firestore, feed: feed, debug: { [log] in log.notice("\($0)") }, now: Self.now)
  }

  /// Observes the decisions about a Realtime Database.
  func observer(ofNamespace namespace: String) -> any DecisionObserver<RealtimeAccess> {
    RealtimeDecisionObserver(namespace, logs: realtime, recordsCoverage: feed != nil, now: Self.now)
  }
}
