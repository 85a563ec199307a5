// Why a port could not be opened.

/// A failure to open a listening port.
public struct PortError: Error, Sendable, CustomStringConvertible {
  /// What went wrong.
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
    /// Anything else the operating system reports.
    public static let system = Reason(name: "system")
  }

  /// What went wrong.
  public var reason: Reason
  /// What a person reads.
  public var description: String

  /// Makes an error.
  public init(_ reason: Reason, _ description: String) {
    self.reason = reason
    self.description = description
  }
}
