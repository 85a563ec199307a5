// Decides requests a second time, by the ruleset with the label `canary`, and reports differences from the rules in
// force.
//
// Invariant: a canary never changes the verdict about a request. An error of its decision is ignored. But if the
// canary takes long to decide a write, both rulesets decide it in the background.

import Access
import Locking
import RealtimeModel

/// The ruleset with the label `canary`.
struct CanaryRuleset: Sendable {
  let id: String
  let policy: any AccessPolicy<RealtimeAccess>

  /// Decides an operation, and reports the difference from the decision in force if there is one.
  ///
  /// - Parameter time: the clock in microseconds since the Unix epoch.
  /// - Throws: ``Access/DecisionInterrupted`` only.
  func compare(
    _ decision: RealtimeDecision, _ operation: RealtimeAccess.Operation, _ caller: Principal, at time: Int64,
    reportingTo log: CanaryLog, view: () -> any TreeView
  ) throws {
    let other: RealtimeDecision
    if policy.allowsEverything(caller) {
      other = .allowed
    } else {
      do {
        other = try policy.decide(caller, operation, view: view())
      } catch let interruption as DecisionInterrupted { throw interruption } catch { return }
    }
    guard (other.denial == nil) != (decision.denial == nil) else { return }
    let callerDescription =
      caller.user.map { "user \(String(reflecting: $0.id.prefix(128)))" } ?? "a caller without credentials"
    let subject =
      "\(operation.name) of \(operation.paths.prefix(3).map { "/\($0)" }.joined(separator: ", ").prefix(256)) by \(callerDescription)"
    if let denial = other.denial {
      log.add("the canary ruleset \(id) would deny the \(subject): \(denial.reason.prefix(512))", at: time)
    } else {
      log.add("the canary ruleset \(id) would allow the \(subject), which is denied", at: time)
    }
  }
}

/// Reports differences to the operator, at most ``maximumReports`` in a minute.
final class CanaryLog: Sendable {
  /// Maximum reports in a minute, so that clients cannot flood the log.
  static let maximumReports = 60
  private static let windowMicroseconds: Int64 = 60_000_000

  private struct State {
    var windowStart: Int64?
    var count = 0
  }

  private let state = Guarded(State())
  private let report: @Sendable (String) -> Void

  init(report: @escaping @Sendable (String) -> Void) { self.report = report }

  /// Reports a difference, or counts it if the minute has too many.
  ///
  /// - Parameter time: the clock in microseconds since the Unix epoch.
  func add(_ text: String, at time: Int64) {
    let (position, omitted) = state.withLock { state in
      var omitted = 0
      let isOver = state.windowStart.map { time < $0 || time - $0 >= Self.windowMicroseconds } ?? true
      if isOver {
        omitted = max(0, state.count - Self.maximumReports)
        state.windowStart = time
        state.count = 0
      }
      state.count += 1
      return (state.count, omitted)
    }
    if omitted > 0 { report("\(omitted) further differences of the canary ruleset were not reported") }
    if position <= Self.maximumReports { report(text) }
  }
}

extension TreeOperation {
  /// The operation in a word, for reports.
  fileprivate var name: String {
    switch self {
    case .read: "read"
    case .listen: "listen"
    case .write, .merge: "write"
    case .conditionalWrite: "conditional write"
    case .onDisconnect: "onDisconnect write"
    }
  }
}
