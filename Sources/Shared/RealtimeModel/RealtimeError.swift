// The error type of the Realtime Database: the status on the wire and a message.

/// An error with Firebase's status string and message.
public struct RealtimeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A status string of the protocol. It is a struct, so that unknown statuses are kept.
  public struct Status: Hashable, Sendable, RawRepresentable {
    /// The string on the wire.
    public var rawValue: String
    /// Wraps a status string.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The request succeeded.
    public static let ok = Status(rawValue: "ok")
    /// The rules do not permit the request.
    public static let permissionDenied = Status(rawValue: "permission_denied")
    /// A conditional set found a value with another hash.
    public static let dataStale = Status(rawValue: "datastale")
    /// The request failed for the reason in the message.
    public static let failure = Status(rawValue: "failure")
    /// The credential cannot be read or verified.
    public static let invalidToken = Status(rawValue: "invalid_token")
    /// The credential has expired.
    public static let expiredToken = Status(rawValue: "expired_token")
    /// The requested data exceeds the limit of one response.
    public static let tooBig = Status(rawValue: "too_big")
    /// The data exceeds the limit of one write.
    public static let writeTooBig = Status(rawValue: "write_too_big")
    /// The service is temporarily unavailable; the request may or may not have taken effect.
    public static let unavailable = Status(rawValue: "unavailable")
    /// The connection was lost before the response.
    public static let disconnected = Status(rawValue: "disconnected")
    /// A transaction exceeded its maximum number of attempts.
    public static let maxRetries = Status(rawValue: "maxretry")
    /// A transaction was overridden by a set.
    public static let overriddenBySet = Status(rawValue: "set")
    /// A write was cancelled by the client.
    public static let writeCanceled = Status(rawValue: "write_canceled")
  }

  /// The status on the wire.
  public var status: Status
  /// The description, which peers may show verbatim.
  public var message: String

  /// Makes an error.
  public init(_ status: Status, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The rules do not permit the request.
  public static let permissionDenied = RealtimeError(.permissionDenied, "Permission denied")
  /// The credential of the request has expired.
  public static let expiredToken = RealtimeError(.expiredToken, "Auth token is expired.")
  /// A conditional set found another value.
  public static let dataStale = RealtimeError(.dataStale, "Transaction hash does not match")
  /// The data exceeds the limit of one write.
  public static let writeTooBig = RealtimeError(
    .writeTooBig,
    "Data to write exceeds the maximum size that can be modified with a single request.")
  /// The requested data exceeds the limit of one response.
  public static let tooBig = RealtimeError(
    .tooBig, "The specified payload is too large, please request a location with less data.")
  /// Data that cannot be stored.
  public static func invalidData(_ reason: String) -> RealtimeError {
    RealtimeError(.failure, "Invalid data; \(reason)")
  }
  /// An invalid path.
  public static let invalidPath = RealtimeError(.failure, "Invalid path: Invalid token in path")
  /// A filtered read over a path that no index covers.
  public static func indexNotDefined(_ index: String, path: String) -> RealtimeError {
    RealtimeError(
      .failure, "Index not defined, add \".indexOn\": \"\(index)\", for path \"\(path)\", to the rules")
  }

  /// The status and the message.
  public var description: String { "\(status.rawValue): \(message)" }
}
