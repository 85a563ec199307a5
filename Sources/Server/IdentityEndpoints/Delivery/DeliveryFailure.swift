// The reason that a message could not be sent, for the operator's log. Clients receive no details.

/// A message that could not be sent.
package struct DeliveryFailure: Error, Sendable, Equatable, CustomStringConvertible {
  package var description: String

  /// Creates a failure.
  package init(_ description: String) { self.description = description }
}
