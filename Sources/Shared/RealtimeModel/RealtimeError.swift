// The one error type of the Realtime Database: a status as it stands on the wire and a text for people.

/// An error with the product's own status string and message.
public struct RealtimeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A status as the protocol spells it. A struct, so that statuses can be added.
  public struct Status: Hashable, Sendable, RawRepresentable {
    /// The text on the wire.
    public var rawValue: String
    /// Wraps a status text.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Done.
    public static let ok = Status(rawValue: "ok")
    /// The rules do not allow it.
    public static let permissionDenied = Status(rawValue: "permission_denied")
    /// A conditional set found another value than its hash says.
    public static let dataStale = Status(rawValue: "datastale")
    /// Refused, for the reason in the message.
    public static let failure = Status(rawValue: "failure")
    /// The credential cannot be read or verified.
    public static let invalidToken = Status(rawValue: "invalid_token")
    /// The credential has expired.
    public static let expiredToken = Status(rawValue: "expired_token")
    /// The data asked for is larger than one answer may be.
    public static let tooBig = Status(rawValue: "too_big")
    /// The data to write is larger than one write may be.
    public static let writeTooBig = Status(rawValue: "write_too_big")
    /// Temporarily impossible; what was asked may or may not have happened.
    public static let unavailable = Status(rawValue: "unavailable")
    /// The connection broke before the answer.
    public static let disconnected = Status(rawValue: "disconnected")
    /// A transaction was tried as often as is allowed.
    public static let maxRetries = Status(rawValue: "maxretry")
    /// A transaction was overridden by a set.
    public static let overriddenBySet = Status(rawValue: "set")
    /// A write was cancelled by the client.
    public static let writeCanceled = Status(rawValue: "write_canceled")
  }

  /// The status on the wire.
  public var status: Status
  /// What happened; peers may show it verbatim.
  public var message: String

  /// Makes an error.
  public init(_ status: Status, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The rules do not allow it.
  public static let permissionDenied = RealtimeError(.permissionDenied, "Permission denied")
  /// A conditional set found another value.
  public static let dataStale = RealtimeError(.dataStale, "Transaction hash does not match")
  /// More data in one write than is allowed.
  public static let writeTooBig = RealtimeError(
    .writeTooBig,
    "Data to write exceeds the maximum size that can be modified with a single request.")
  /// More data in one answer than is allowed.
  public static let tooBig = RealtimeError(
    .tooBig, "The specified payload is too large, please request a location with less data.")
  /// Data that cannot be stored.
  public static func invalidData(_ reason: String) -> RealtimeError {
    RealtimeError(.failure, "Invalid data; \(reason)")
  }
  /// A path that names no location.
  public static let invalidPath = RealtimeError(.failure, "Invalid path: Invalid token in path")
  /// A filtered read over a path that no index covers.
  public static func indexNotDefined(_ index: String, path: String) -> RealtimeError {
    RealtimeError(
      .failure, "Index not defined, add \".indexOn\": \"\(index)\", for path \"\(path)\", to the rules")
  }

  /// The status and the message.
  public var description: String { "\(status.rawValue): \(message)" }
}
