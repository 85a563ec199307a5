// Describes why a port cannot be opened.

/// A failure to open a listening port.
public struct PortError: Error, Sendable, CustomStringConvertible {
  /// The kind of a failure.
  public struct Reason: Sendable, Hashable {
    private let name: String

    /// Another process listens on the address.
    public static let addressInUse = Reason(name: "address in use")
    /// The host is not an address of this machine, or cannot be resolved.
    public static let addressUnavailable = Reason(name: "address unavailable")
    /// The operating system does not allow this port to this user.
    public static let notPermitted = Reason(name: "not permitted")
    /// A certificate or key cannot be used.
    public static let tls = Reason(name: "TLS")
    /// Any other error of the operating system.
    public static let system = Reason(name: "system")
  }

  /// The kind of the failure.
  public var reason: Reason
  /// The error text for an operator.
  public var description: String

  /// Creates an error.
  public init(_ reason: Reason, _ description: String) {
    self.reason = reason
    self.description = description
  }
}
