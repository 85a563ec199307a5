// Decides about operations of the Realtime Database by security rules.
//
// Reads need one true `.read` between the root and the location. Writes need one true `.write` between the root and
// each written location. Every `.validate` on that path and below the location must also be true for the state after
// the complete write.
//
// Invariant: the cost of a decision grows with the number of paths of the operation and of the rules on them, and with
// the number of written locations that have `.validate` rules. It does not depend on the size of the tree.

package import Access
package import RealtimeModel

/// The policy of a Realtime Database with rules.
package struct RealtimeRulesPolicy: AccessPolicy {
  package typealias Product = RealtimeAccess

  /// The rules.
  package let ruleset: RealtimeRuleset
  private let isOpen: Bool

  /// Makes the policy of compiled rules.
  package init(_ ruleset: RealtimeRuleset) {
    self.ruleset = ruleset
    isOpen = ruleset.isOpen
  }

  /// The policy of a stored rules file. A file with expressions that do not compile, such as one that an earlier version
  /// stored, denies everything.
  package static func policy(of file: RulesFile) -> any AccessPolicy<RealtimeAccess> {
    do throws(RealtimeModel.RulesError) {
      return RealtimeRulesPolicy(try RealtimeRuleset(Array(file.text.utf8)))
    } catch { return InvalidRulesPolicy(rules: file.text, error: error) }
  }

  /// The rules file.
  package var rules: String { ruleset.file.text }

  /// Whether the rules permit everything without evaluation.
  package func allowsEverything(_ principal: Principal) -> Bool { isOpen }

  /// Decides one operation.
  ///
  /// - Throws: any error that reading through `view` throws.
  package func decide(
    _ principal: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) throws -> RealtimeDecision { try ruleset.decide(principal, operation, view: view) }

  /// Decides one operation, and counts the values of its expressions.
  ///
  /// - Throws: any error that reading through `view` throws.
  package func decideRecorded(
    _ principal: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) throws -> RealtimeDecision {
    try ruleset.inspection.decideAndCount(operation, of: principal, view: view)
      ?? ruleset.decide(principal, operation, view: view)
  }
}

extension RealtimeRuleset {
  /// Decides one operation.
  ///
  /// - Parameter report: receives each rule that is evaluated; nil for none.
  /// - Throws: any error that reading through `view` throws.
  func decide(
    _ principal: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView,
    report: RealtimeRuleReport? = nil
  ) throws -> RealtimeDecision {
    switch operation {
    case .read(let path, let query), .listen(let path, let query):
      var walk = RealtimeRuleWalk(root, principal, view: view, query: query, recordsReads: true)
      defer { view.work?.spend(walk.evaluation.spentSteps) }
      walk.report = report
      if let denial = try walk.checkPermission(path, .read) { return .deny(reason: denial) }
      return .allow(dependingOn: walk.evaluation.readPaths, time: walk.evaluation.hasReadTime)
    case .write(let path), .conditionalWrite(let path):
      var walk = RealtimeRuleWalk(root, principal, view: view, maximumSteps: operation.maximumSteps)
      defer { view.work?.spend(walk.evaluation.spentSteps) }
      walk.report = report
      if let denial = try walk.checkPermission(path, .write) { return .deny(reason: denial) }
      if let denial = try walk.validate(path) { return .deny(reason: denial) }
      return .allowed
    case .merge(let paths), .onDisconnect(let paths):
      var walk = RealtimeRuleWalk(root, principal, view: view, maximumSteps: operation.maximumSteps)
      defer { view.work?.spend(walk.evaluation.spentSteps) }
      walk.report = report
      for path in paths {
        if let denial = try walk.checkPermission(path, .write) { return .deny(reason: denial) }
      }
      for path in paths {
        if let denial = try walk.validate(path) { return .deny(reason: denial) }
      }
      return .allowed
    }
  }
}

extension TreeOperation {
  /// The budget of the decisions about the operation, in steps.
  fileprivate var maximumSteps: Int {
    switch self {
    case .read, .listen, .onDisconnect: RealtimeBudget.stepsPerOperation
    case .write, .conditionalWrite, .merge: RealtimeBudget.stepsPerWrite
    }
  }
}

/// The policy of stored rules that do not compile: it denies everything.
private struct InvalidRulesPolicy: AccessPolicy {
  typealias Product = RealtimeAccess

  let rules: String
  let error: RealtimeModel.RulesError

  func decide(
    _ principal: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) -> RealtimeDecision { .deny(reason: "the stored rules do not compile: \(error)") }
}
