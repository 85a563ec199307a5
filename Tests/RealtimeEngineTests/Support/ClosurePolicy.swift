// Implements an access policy that a test defines by a closure.

import Access
import Locking
import RealtimeModel

/// A policy of a test. It counts its decisions.
final class ClosurePolicy: AccessPolicy {
  typealias Decide =
    @Sendable (Principal, RealtimeAccess.Operation, any TreeView) throws -> RealtimeDecision

  private let body: Decide
  private let decided = Guarded(0)

  init(_ body: @escaping Decide) { self.body = body }

  /// The number of decisions so far.
  var count: Int { decided.withLock { $0 } }

  func decide(
    _ principal: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) throws -> RealtimeDecision {
    decided.withLock { $0 += 1 }
    return try body(principal, operation, view)
  }

  /// Allows an operation if a condition holds.
  static func when(
    _ isAllowed: @escaping @Sendable (Principal, RealtimeAccess.Operation, any TreeView) throws -> Bool
  ) -> ClosurePolicy {
    ClosurePolicy { try isAllowed($0, $1, $2) ? .allowed : .deny(reason: "test") }
  }
}
