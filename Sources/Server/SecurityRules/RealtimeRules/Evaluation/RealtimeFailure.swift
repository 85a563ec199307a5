/// A failure while a rule of the Realtime Database is evaluated. It makes the complete rule false.
package enum RealtimeFailure: Error, Hashable, Sendable {
  /// An operand has a type that the operation does not accept.
  case type(String)
  /// `parent()` of the root or of a path that no location can have.
  case noParent
  /// The budget of the operation is spent.
  case budget

  /// The failure, for the operator's log.
  package var description: String {
    switch self {
    case .type(let text): text
    case .noParent: "parent() of a location without a parent"
    case .budget: "the evaluation exceeds its budget"
    }
  }
}
