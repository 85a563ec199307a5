// The decision of an access policy: allowed or denied, and the facts that the decision depends on.

/// A policy's decision about one operation.
package struct AccessDecision<Product: AccessProduct>: Sendable {
  /// Why an operation is denied.
  package struct Denial: Error, Sendable {
    /// The error for the caller. It does not depend on stored data, except in an emulator.
    package var error: Product.Failure
    /// The reason for the operator's log, such as the rule and its line.
    package var reason: String

    /// Makes a denial.
    package init(_ error: Product.Failure, reason: String) {
      self.error = error
      self.reason = reason
    }
  }

  /// Why the operation is denied; nil if it is allowed.
  package var denial: Denial?
  /// The items that the decision read. When one of them changes, the policy decides again about an open listen. Items
  /// that are results of the listen may be omitted.
  package var dependencies: [Product.Resource]
  /// Whether the decision read the time. The policy then decides again before an open listen sends anything.
  package var dependsOnTime: Bool
  /// The evaluation behind the decision, for an observer of all decisions; nil unless it was requested.
  package var record: (any DecisionRecord)?
  /// The state with which the policy continues if it has decided only a part of the operation: see
  /// ``UnfinishedDecision``. Nil for a finished decision.
  package var continuation: (any Sendable)?

  private init(_ denial: Denial?, _ dependencies: [Product.Resource], _ dependsOnTime: Bool) {
    self.denial = denial
    self.dependencies = dependencies
    self.dependsOnTime = dependsOnTime
  }

  /// Allows the operation. No later change of data or time causes a new decision.
  package static var allowed: AccessDecision { AccessDecision(nil, [], false) }

  /// Allows the operation. If an item that the decision read changes, the policy decides again.
  package static func allow(
    dependingOn dependencies: [Product.Resource] = [], time dependsOnTime: Bool = false
  ) -> AccessDecision {
    AccessDecision(nil, dependencies, dependsOnTime)
  }

  /// Denies the operation.
  /// - Parameters:
  ///   - error: the error for the caller; nil for the product's usual error.
  ///   - reason: the reason for the operator's log.
  package static func deny(
    _ error: Product.Failure? = nil, reason: String, dependingOn dependencies: [Product.Resource] = [],
    time dependsOnTime: Bool = false
  ) -> AccessDecision {
    AccessDecision(Denial(error ?? Product.permissionDenied, reason: reason), dependencies, dependsOnTime)
  }
}

/// Thrown instead of a decision that would take long: the policy has decided only a part of the operation, and allows
/// nothing yet.
///
/// The engine lets other operations run, then requests the next part with ``DecisionPart/rest(_:)``. It must do so at
/// the same version, or start again if one of the documents that were read has changed.
package struct UnfinishedDecision<Product: AccessProduct>: Error {
  /// The state with which the policy continues. Only the policy knows its contents.
  package var continuation: any Sendable
  /// The items that the decision has read so far, apart from those that the operation names.
  package var dependencies: [Product.Resource]
}

/// The part of an operation that a policy decides in one call.
package enum DecisionPart: Sendable {
  /// The complete operation, without a limit of time.
  case all
  /// The first part.
  case start
  /// The next part after an unfinished decision. The value is the `continuation` of that decision.
  case rest(any Sendable)
}

/// The evaluation behind a decision. Only the policy that made it and its observer know the contents.
package protocol DecisionRecord: AnyObject, Sendable {}
