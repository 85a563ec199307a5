// Finds the rules that apply to a location and evaluates them.
//
// `.read` and `.write` cascade: the first true rule on the path from the root grants the operation, and no rule below
// revokes it. `.validate` does not cascade: all rules on the path and below the location must be true wherever a value
// exists after the write.
//
// The priority of a location is not a child: the rules of the location apply to it.

import Access
import RealtimeModel

/// One pass over the rules for one operation.
struct RealtimeRuleWalk {
  /// Whether a deletion of a child evaluates the `.validate` rules of its remaining ancestors. The documentation of the
  /// hosted service does not state it; older simulators skipped these rules.
  private static let validatesParentsOfDeletions = true

  /// The maximum number of child keys that one read of the view returns.
  private static let keysPerPage = 256

  private let root: RealtimeRuleNode
  private let view: any TreeView
  private(set) var evaluation: RealtimeEvaluation
  /// Receives each evaluated rule with the values of its marked expressions; nil for none.
  var report: RealtimeRuleReport?
  /// The locations whose `.validate` rule was true.
  private var validated: Set<Path> = []

  /// - Parameters:
  ///   - recordsReads: whether the locations that rules read are recorded.
  ///   - maximumSteps: the budget of the operation.
  init(
    _ root: RealtimeRuleNode, _ principal: Principal, view: any TreeView, query: QuerySpec = .default,
    recordsReads: Bool = false, maximumSteps: Int = RealtimeBudget.stepsPerOperation
  ) {
    self.root = root
    self.view = view
    evaluation = RealtimeEvaluation(
      principal, view: view, query: query, recordsReads: recordsReads, maximumSteps: maximumSteps)
  }

  // MARK: Permission

  /// Searches for a rule that grants an operation at a location.
  ///
  /// - Returns: nil if a rule grants it; otherwise the reason for the operator's log.
  mutating func checkPermission(_ path: Path, _ kind: RuleSite.Kind) throws -> String? {
    let path = path.dataPath
    if kind == .write { evaluation.addLocationAllowance() }
    var node = root
    var results: [(rule: RealtimeRule, depth: Int, result: RealtimeRuleResult)] = []
    for depth in 0...path.count {
      if let rule = kind == .read ? node.read : node.write {
        let result = try evaluate(rule, path, depth)
        if result == .granted { return nil }
        results.append((rule, depth, result))
      }
      guard depth < path.count, let next = node.child(path.keys[depth]) else { break }
      node = next
    }
    guard !results.isEmpty else { return "no \(kind.rawValue) rule on the way to /\(path)" }
    return results.map { describe($0.rule, at: path.prefix($0.depth), $0.result) }.joined(separator: "; ")
  }

  /// Evaluates a rule at the location that the first `depth` keys of a path name.
  private mutating func evaluate(
    _ rule: RealtimeRule, _ path: Path, _ depth: Int
  ) throws -> RealtimeRuleResult {
    let result = try evaluation.evaluate(rule, at: path, depth: depth)
    report?(rule, path, depth, result, evaluation.trace)
    return result
  }

  private func describe(_ rule: RealtimeRule, at location: Path, _ result: RealtimeRuleResult) -> String {
    let subject = "\(rule.kind.rawValue) of /\(location) in line \(rule.line)"
    if case .failed(let failure) = result { return "\(subject) failed: \(failure.description)" }
    return "\(subject) is false"
  }

  // MARK: Validation

  /// Validates a written location by the rules on the path from the root and the rules below the location.
  ///
  /// - Returns: nil if all are true; otherwise the reason for the operator's log.
  mutating func validate(_ path: Path) throws -> String? {
    guard root.hasValidation else { return nil }
    // A priority that is written to a missing location changes nothing.
    if path.isPriority || !Self.validatesParentsOfDeletions, !(try view.exists(at: path.dataPath, .after)) {
      return nil
    }
    let path = path.dataPath
    var node = root
    for (depth, key) in path.keys.enumerated() {
      if node.validate != nil {
        let location = path.prefix(depth)
        if validated.insert(location).inserted {
          // If this location has no value, no location below has one.
          guard try view.exists(at: location, .after) else { return nil }
          if let denial = try validate(node, path, depth) { return denial }
        }
      }
      guard let next = node.child(key), next.hasValidation else { return nil }
      node = next
    }
    return try validateAll(node, path)
  }

  /// Evaluates the `.validate` rule of a location that exists after the write.
  private mutating func validate(
    _ node: RealtimeRuleNode, _ path: Path, _ depth: Int
  ) throws -> String? {
    guard let rule = node.validate else { return nil }
    let result = try evaluate(rule, path, depth)
    return result == .granted ? nil : describe(rule, at: path.prefix(depth), result)
  }

  /// Validates a written location and everything below it.
  private mutating func validateAll(_ node: RealtimeRuleNode, _ location: Path) throws -> String? {
    let content = try view.content(at: location, .after)
    if case .empty = content { return nil }
    evaluation.addLocationAllowance()
    evaluation.cacheContent(content, at: location, .after)
    if let denial = try validate(node, location, location.count) { return denial }
    guard case .children = content else { return nil }
    for (key, child) in node.children where child.hasValidation {
      if let denial = try validateAll(child, location.child(key)) { return denial }
    }
    guard let wildcard = node.wildcard, wildcard.hasValidation else { return nil }
    var last: ChildKey?
    while true {
      let keys = try view.childKeys(at: location, after: last, limit: Self.keysPerPage, .after)
      for key in keys where node.children[key] == nil {
        if let denial = try validateAll(wildcard, location.child(key)) { return denial }
      }
      guard keys.count == Self.keysPerPage else { return nil }
      last = keys.last
    }
  }
}

/// Receives an evaluated rule, its location, its result, and the values of its marked expressions. The location is given
/// by a path and a number of keys: the first keys of the path name it.
typealias RealtimeRuleReport = (
  RealtimeRule, Path, Int, RealtimeRuleResult, [(mark: Int32, outcome: RealtimeOutcome)]
) -> Void

extension Path {
  /// The location that the first keys name.
  func prefix(_ count: Int) -> Path { count == self.count ? self : Path(keys: Array(keys[..<count])) }
}
