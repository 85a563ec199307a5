// The request feed publishes the decisions about requests to Firestore in the form of Google's emulator, whose web
// interface shows them. Only emulators have a feed.
//
// Invariant: a subscriber never delays a request. Records are handed over without waiting.

import FirestoreModel
import Foundation
import JSON
import Locking

/// Publishes decisions about requests to Firestore.
package final class RequestFeed: Sendable {
  /// A published decision.
  private struct Record: Sendable {
    /// The members except the rules.
    var members: JSONObject
    /// The text of the rules, which all records of a release share.
    var rules: String

    var json: JSONValue {
      var members = members
      members["rules"] = .string(rules)
      return .object(members)
    }
  }

  private struct State {
    var recent: [Record] = []
    var subscribers: [Int: @Sendable ([UInt8]) -> Void] = [:]
    var nextID = 0
  }

  /// The records that a new subscriber receives first.
  private static let recentCount = 50

  private let state = Guarded(State())
  private let now: @Sendable () -> Int64

  /// Makes a feed.
  /// - Parameter now: the clock in microseconds since 1970.
  package init(now: @escaping @Sendable () -> Int64) { self.now = now }

  /// Adds a subscriber. Its first message is the list of the last records, each further message one record.
  /// - Parameter receive: receives messages as JSON, on any thread and in order. It must be quick and must not call the
  ///   feed.
  /// - Returns: the number by which the subscription ends.
  package func subscribe(_ receive: @escaping @Sendable ([UInt8]) -> Void) -> Int {
    state.withLock { state in
      let id = state.nextID
      state.nextID += 1
      state.subscribers[id] = receive
      receive(JSONValue.array(state.recent.map(\.json)).json())
      return id
    }
  }

  /// Ends a subscription.
  package func unsubscribe(_ id: Int) { state.withLock { _ = $0.subscribers.removeValue(forKey: id) } }

  /// Publishes the evaluation of one document or way of a query.
  func add(_ evaluation: StepEvaluation, by ruleset: FirestoreRuleset, of database: DatabaseName) {
    let outcome = evaluation.isAllowed ? "allow" : evaluation.hasFault ? "error" : "deny"
    let record = Record(
      members: [
        "rulesReleaseKey": .string(
          "projects/\(database.project)/releases/cloud.firestore/\(ruleset.fingerprint.prefix(16))"),
        "requestId": .string(UUID().uuidString.lowercased()),
        "time": .string(Timestamp(microseconds: now()).rfc3339),
        "rulesContext": .object(evaluation.context),
        "granularAllowOutcomes": .array(
          evaluation.statements.map {
            .object(["line": .int(Int64($0.line)), "outcome": .bool($0.isTrue)])
          }),
        "outcome": .string(outcome),
      ], rules: ruleset.source)
    state.withLock { state in
      state.recent.append(record)
      if state.recent.count > Self.recentCount { state.recent.removeFirst() }
      guard !state.subscribers.isEmpty else { return }
      let message = record.json.json()
      for receive in state.subscribers.values { receive(message) }
    }
  }
}

extension StepEvaluation {
  /// The context of the rules: the request and the stored document.
  fileprivate var context: JSONObject {
    let path = "/databases/\(request.database)/documents/\(request.path)\(isQuery ? "/*" : "")"
    var context: JSONObject = [
      "path": .string(path), "method": .string(request.method.rawValue),
      "time": .string(request.time.rfc3339), "request": CoverageValueWriter.json(.map(request.map)),
    ]
    if case .value(let resource) = request.resource {
      context["resource"] = CoverageValueWriter.json(resource)
    } else {
      context["resource"] = CoverageValueWriter.undefined
    }
    return context
  }
}
