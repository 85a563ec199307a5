// The decision about a large commit, made in several time slices of the sequencer.
//
// An access policy may leave a decision unfinished. The commit then leaves the sequencer and is enqueued again, so that
// other commits run in between. Its next attempt plans the writes again and continues the decision.
//
// Invariants
// 1. A commit is written only if every document that its decision has read is unchanged. Otherwise the decision
//    starts again.
// 2. All plans of a commit together cost no more than one commit may. A commit that needs more is denied.

import Access
import FirestoreModel
import OrderedStore

/// The parts of a decision about a commit so far.
struct CommitDecision: Sendable {
  /// Where the decision continues.
  let rest: DecisionPart
  /// The version of the policy that decides.
  private let policyVersion: UInt64
  /// The update times of the documents that the commit writes, in the order of the plan.
  private let written: [Timestamp?]
  /// The update times of the other documents that the policy has read.
  private let read: [(name: DocumentName, updateTime: Timestamp?)]
  /// How often the decision has started.
  let startCount: Int
  /// The cost of all plans so far, in bytes as ``CommitCostBudget`` counts them.
  let cost: Int

  /// Makes a record of an unfinished decision.
  /// - Parameters:
  ///   - startCount: how often the decision has started.
  ///   - costBefore: the cost of earlier plans.
  /// - Throws: the store's errors.
  init(
    _ unfinished: UnfinishedDecision<FirestoreAccess>, policyVersion: UInt64, _ plan: CommitPlan,
    startCount: Int, costBefore: Int
  ) throws {
    rest = .rest(unfinished.continuation)
    self.policyVersion = policyVersion
    written = plan.updateTimesBefore
    let documents = plan.documentView(.all)
    read = try unfinished.dependencies.map { (name: $0, updateTime: try documents.document($0)?.updateTime) }
    self.startCount = startCount
    cost = costBefore + plan.cost
  }

  /// Whether a new plan of the same writes sees the same documents, and the same policy decides.
  /// - Throws: the store's errors.
  func isCurrent(policyVersion: UInt64, _ plan: CommitPlan) throws -> Bool {
    guard policyVersion == self.policyVersion, plan.updateTimesBefore == written else { return false }
    let documents = plan.documentView(.all)
    return try read.allSatisfy { try documents.document($0.name)?.updateTime == $0.updateTime }
  }
}

/// Thrown out of the sequencer by a commit whose decision is unfinished.
struct UndecidedCommit: Error {
  let decision: CommitDecision
}
