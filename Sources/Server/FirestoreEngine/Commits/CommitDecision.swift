// The access policy's decision about a large commit, made in several time slices of the sequencer, which runs one commit of
// a database at a time.
//
// An access policy may leave a decision unfinished. The commit then leaves the sequencer and is enqueued again, so that
// other commits run in between. Its next attempt plans the writes again and continues the decision.
//
// Invariants
// 1. A commit is written only if every document that its decision has read is unchanged. Otherwise the decision
//    starts again.
// 2. All parts of a decision see the same server timestamps and the same time of the request: those of its first part.
// 3. All plans of a commit together cost no more than one commit may. A commit that needs more is denied.

import Access
import FirestoreModel
import OrderedStore

/// The parts of a decision about a commit so far.
struct CommitDecision: Sendable {
  /// Where the decision continues.
  let nextPart: DecisionPart
  /// The version of the policy that decides.
  let policyVersion: UInt64
  /// The request time of the first part. The server timestamps of all plans have this time.
  let requestTime: Timestamp
  /// The update times of the documents that the commit writes, in the order of the plan.
  private let written: [Timestamp?]
  /// The update times of the other documents that the policy has read.
  private let read: [(name: DocumentName, updateTime: Timestamp?)]
  /// How often the decision has started.
  let startCount: Int
  /// The number of parts for which the policy has decided.
  let partCount: Int
  /// The cost of all plans so far, in bytes as ``CommitCostBudget`` counts them. Each plan costs at least the size of the
  /// writes.
  let cost: Int

  /// Makes a record of an unfinished decision.
  /// - Parameters:
  ///   - earlier: the parts before this one; nil if the decision has started with this part.
  ///   - startCount: how often the decision has started.
  ///   - cost: the cost of all plans.
  /// - Throws: the store's errors.
  init(
    _ unfinished: UnfinishedDecision<FirestoreAccess>, policyVersion: UInt64, _ plan: CommitPlan,
    after earlier: CommitDecision?, startCount: Int, cost: Int
  ) throws {
    nextPart = .rest(unfinished.continuation)
    self.policyVersion = policyVersion
    requestTime = plan.requestTime
    written = plan.updateTimesBefore
    read = try unfinished.dependencies.map { (name: $0, updateTime: try plan.updateTimeBefore($0)) }
    self.startCount = startCount
    partCount = (earlier?.partCount ?? 0) + 1
    self.cost = cost
  }

  /// Whether a new plan of the same writes sees the same documents. The caller must compare the policy versions.
  /// - Throws: the store's errors.
  func isCurrent(_ plan: CommitPlan) throws -> Bool {
    guard plan.updateTimesBefore == written else { return false }
    return try read.allSatisfy { try plan.updateTimeBefore($0.name) == $0.updateTime }
  }
}

extension [Write] {
  /// The size of the names and values in bytes, by the formula of ``DocumentSize``.
  var size: Int {
    reduce(0) { size, write in
      var size = size + DocumentSize.of(path: write.document.path)
      if case .update(_, let fields) = write.operation { size += DocumentSize.of(fields: fields) }
      for transform in write.allTransforms {
        switch transform.operation {
        case .serverTimestamp: size += 8
        case .increment(let value), .maximum(let value), .minimum(let value):
          size += DocumentSize.of(value: value)
        case .appendMissing(let values), .removeAll(let values):
          size += DocumentSize.of(value: .array(values))
        }
      }
      return size
    }
  }
}

/// Thrown out of the sequencer by a commit whose decision is unfinished.
struct UndecidedCommit: Error {
  let decision: CommitDecision
}
