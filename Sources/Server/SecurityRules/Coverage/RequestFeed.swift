// The request feed publishes the decisions about requests to Firestore in the form of Google's emulator, whose web
// interface shows them. Only emulators have a feed.
//
// Without a subscriber, a record costs only an allocation, because its JSON is written when a subscriber receives it.
//
// Invariant: a subscriber never delays a request, because the feed calls it without waiting for a result. The feed
// retains the last records for new subscribers, and limits the size of the documents in them.

import FirestoreModel
import JSON
import Locking

/// Publishes decisions about requests to Firestore.
package final class RequestFeed: Sendable {
  /// A published decision. Its JSON is written when a subscriber receives it.
  private final class Record: Sendable {
    let evaluation: StepEvaluation
    let ruleset: FirestoreRuleset
    let database: DatabaseName
    let number: UInt64
    /// The time of the decision in microseconds since 1970.
    let time: Int64

    init(
      _ evaluation: StepEvaluation, _ ruleset: FirestoreRuleset, _ database: DatabaseName, _ number: UInt64,
      _ time: Int64
    ) {
      self.evaluation = evaluation
      self.ruleset = ruleset
      self.database = database
      self.number = number
      self.time = time
    }
  }

  /// A recent record: the decision itself, or its JSON if the documents are large.
  private enum Recent {
    case record(Record)
    case written(JSONValue)
  }

  private struct State {
    /// The last records, in a ring that begins at `first`.
    var recent: [Recent] = []
    var first = 0
    var subscribers: [Int: @Sendable ([UInt8]) -> Void] = [:]
    var nextID = 0
    var count: UInt64 = 0
  }

  /// The records that a new subscriber receives first.
  private static let recentCount = 50
  /// The weight above which the documents of a record are not retained, as ``RuleWeight`` measures it.
  private static let maximumRetainedWeight = 32 * 1024

  private let state = Guarded(State())
  private let now: @Sendable () -> Int64
  /// The first half of the IDs of requests; the second half is the number of the record.
  private let idPrefix = UInt64.random(in: .min ... .max)

  /// Makes a feed.
  /// - Parameter now: the clock in microseconds since 1970.
  package init(now: @escaping @Sendable () -> Int64) { self.now = now }

  /// Adds a subscriber. Its first message is the list of the last records; every later message is one record.
  /// - Parameter receive: receives messages as JSON, on any thread and in order. It must be quick and must not call the
  ///   feed.
  /// - Returns: the number of the subscription, for ``unsubscribe(_:)``.
  package func subscribe(_ receive: @escaping @Sendable ([UInt8]) -> Void) -> Int {
    state.withLock { state in
      let id = state.nextID
      state.nextID += 1
      state.subscribers[id] = receive
      let recent = state.recent[state.first...] + state.recent[..<state.first]
      receive(JSONValue.array(recent.map(json)).json())
      return id
    }
  }

  /// Ends a subscription.
  package func unsubscribe(_ id: Int) { state.withLock { _ = $0.subscribers.removeValue(forKey: id) } }

  /// Publishes the evaluation of one document, or of one alternative (disjunct) of a query's filter.
  func publish(_ evaluation: StepEvaluation, by ruleset: FirestoreRuleset, of database: DatabaseName) {
    let time = now()
    let isLarge = evaluation.weight(limit: Self.maximumRetainedWeight) > Self.maximumRetainedWeight
    state.withLock { state in
      let record = Record(evaluation, ruleset, database, state.count, time)
      state.count += 1
      let recent: Recent = isLarge ? .written(json(record)) : .record(record)
      if state.recent.count < Self.recentCount {
        state.recent.append(recent)
      } else {
        state.recent[state.first] = recent
        state.first = (state.first + 1) % Self.recentCount
      }
      guard !state.subscribers.isEmpty else { return }
      let message = json(recent).json()
      for receive in state.subscribers.values { receive(message) }
    }
  }

  private func json(_ recent: Recent) -> JSONValue {
    switch recent {
    case .record(let record): json(record)
    case .written(let json): json
    }
  }

  private func json(_ record: Record) -> JSONValue {
    let evaluation = record.evaluation
    let outcome = evaluation.isAllowed ? "allow" : evaluation.hasFault ? "error" : "deny"
    return .object([
      "rulesReleaseKey": .string(
        "projects/\(record.database.project)/releases/cloud.firestore/\(record.ruleset.fingerprint.prefix(16))"
      ),
      "requestId": .string(id(of: record)),
      "time": .string(Timestamp(microseconds: record.time).rfc3339),
      "rulesContext": .object(evaluation.context),
      "granularAllowOutcomes": .array(
        evaluation.statements.map {
          .object(["line": .int(Int64($0.line)), "outcome": .bool($0.isTrue)])
        }),
      "outcome": .string(outcome),
      "rules": .string(record.ruleset.source),
    ])
  }

  /// The ID of a record in the form of a UUID of version 8, whose bits the application defines.
  private func id(of record: Record) -> String {
    var bytes = [UInt8](repeating: 0, count: 16)
    for index in 0..<8 {
      bytes[index] = UInt8(truncatingIfNeeded: idPrefix >> (8 * index))
      bytes[15 - index] = UInt8(truncatingIfNeeded: record.number >> (8 * index))
    }
    bytes[6] = bytes[6] & 0x0F | 0x80
    bytes[8] = bytes[8] & 0x3F | 0x80
    let digits = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    let groups = [digits[0..<4], digits[4..<6], digits[6..<8], digits[8..<10], digits[10..<16]]
    return groups.map { $0.joined() }.joined(separator: "-")
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

  /// The weight of the documents of the request; any number above `limit` if the weight exceeds `limit`.
  fileprivate func weight(limit: Int) -> Int {
    var weight = 0
    var values: [RuleValue?] = [request.newResource]
    if case .value(let resource) = request.resource { values.append(resource) }
    for case .map(.document(let document))? in values where weight <= limit {
      weight += RuleWeight.of(.map(.stored(document.fields)), limit: limit - weight)
    }
    return weight
  }
}
