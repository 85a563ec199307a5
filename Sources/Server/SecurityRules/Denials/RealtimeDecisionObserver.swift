// Records the denied operations of one Realtime Database. An emulator's observer also counts the coverage of all
// decisions.

package import Access
import JSON
import RealtimeModel

/// Observes the decisions about one Realtime Database.
package struct RealtimeDecisionObserver: DecisionObserver {
  private let namespace: String
  private let logs: DenialLogs<String>
  private let now: @Sendable () -> Int64
  /// Whether the observer also receives decisions that allow: the coverage needs them.
  package let observesAllowed: Bool

  /// Makes an observer.
  /// - Parameters:
  ///   - recordsCoverage: whether to count the values of expressions in every decision; false in production.
  ///   - now: the clock in microseconds since 1970.
  package init(
    _ namespace: String, logs: DenialLogs<String>, recordsCoverage: Bool = false,
    now: @escaping @Sendable () -> Int64
  ) {
    self.namespace = namespace
    self.logs = logs
    self.now = now
    observesAllowed = recordsCoverage
  }

  package func observe(
    _ decision: RealtimeDecision, about operation: TreeOperation, of principal: Principal,
    by policy: any AccessPolicy<RealtimeAccess>, view: (any TreeView)?
  ) {
    guard let denial = decision.denial else { return }
    let log = logs.log(of: namespace)
    let time = now()
    guard log.admit(at: time) else { return }
    var members = DenialMembers.common(
      microseconds: time, operation: operation.name, paths: operation.paths.map { "/\($0)" }, principal,
      reason: denial.reason)
    var request: RecordedRequest?
    if let inspection = (policy as? RealtimeRulesPolicy)?.ruleset.inspection, let view {
      members["ruleset"] = .string(inspection.fingerprint)
      let tree = RecordedTree(source: view, now: view.now)
      let decision = try? inspection.explain(operation, of: principal, view: tree)
      if let decision { members["decision"] = decision.json }
      members["data"] = .array(
        operation.paths.prefix(DenialMembers.maximumNames).map { Self.summary(at: $0, tree) })
      request = .realtime(
        RecordedTreeRequest(
          operation: operation, principal: principal, time: view.now, answers: tree.answers,
          bytes: tree.bytes))
    }
    request = DenialMembers.addReplay(request, limit: log.limits.requestBytes, &members)
    log.append(members, request: request)
  }

  private static func summary(at path: Path, _ view: any TreeView) -> JSONValue {
    var object: JSONObject = ["path": .string("/\(path)")]
    for (name, state) in [("before", TreeState.before), ("after", .after)] {
      guard let content = try? view.content(at: path.dataPath, state) else { continue }
      object[name] =
        switch content {
        case .empty: .string("null")
        case .leaf(let value): .string(RealtimeValue(value).typeName)
        case .children: .string("object")
        }
    }
    return .object(object)
  }
}

extension TreeOperation {
  /// The name of the operation for operators.
  fileprivate var name: String {
    switch self {
    case .read: "read"
    case .listen: "listen"
    case .write: "write"
    case .merge: "update"
    case .conditionalWrite: "conditionalWrite"
    case .onDisconnect: "onDisconnect"
    }
  }
}
