// Describes why a port cannot be opened.

/// A failure to open a listening port.
package struct PortError: Error, Sendable, CustomStringConvertible {
  /// The kind of a failure.
  package struct Reason: Sendable, Hashable {
    private let name: String

    /// Another process listens on the address.
    package static let addressInUse = Reason(name: "address in use")
    /// The host is not an address of this machine, or cannot be resolved.
    package static let addressUnavailable = Reason(name: "address unavailable")
    /// The operating system does not allow this port to this user.
    package static let notPermitted = Reason(name: "not permitted")
    /// A certificate or key cannot be used.
    package static let tls = Reason(name: "TLS")
    /// Any other error of the operating system.
    package static let system = Reason(name: "system")
  }

  /// The kind of the failure.
  package var reason: Reason
  /// The error text for an operator.
  package var description: String

  /// Creates an error.
  package init(_ reason: Reason, _ description: String) {
    self.reason = reason
    self.description = description
  }
}
