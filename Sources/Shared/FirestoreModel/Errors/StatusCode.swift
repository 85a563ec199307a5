// The 17 canonical status codes of gRPC, and the HTTP status of each.

/// A canonical gRPC status code. It is a struct, so that unknown codes survive a round trip.
public struct StatusCode: Hashable, Sendable, RawRepresentable, CustomStringConvertible {
  /// The number on the wire.
  public var rawValue: Int32

  /// Makes a code from its number on the wire.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// Success.
  public static let ok = StatusCode(rawValue: 0)
  /// The caller cancelled the call.
  public static let cancelled = StatusCode(rawValue: 1)
  /// An unknown error.
  public static let unknown = StatusCode(rawValue: 2)
  /// The request is invalid, whatever the state of the system.
  public static let invalidArgument = StatusCode(rawValue: 3)
  /// The deadline passed before the call ended.
  public static let deadlineExceeded = StatusCode(rawValue: 4)
  /// The requested entity does not exist.
  public static let notFound = StatusCode(rawValue: 5)
  /// The entity to create exists already.
  public static let alreadyExists = StatusCode(rawValue: 6)
  /// The caller is known but not permitted.
  public static let permissionDenied = StatusCode(rawValue: 7)
  /// A quota or limit is exhausted.
  public static let resourceExhausted = StatusCode(rawValue: 8)
  /// The system is not in the state that the request needs.
  public static let failedPrecondition = StatusCode(rawValue: 9)
  /// The call conflicts with another; the complete transaction may be retried.
  public static let aborted = StatusCode(rawValue: 10)
  /// Beyond the valid range.
  public static let outOfRange = StatusCode(rawValue: 11)
  /// Not supported here.
  public static let unimplemented = StatusCode(rawValue: 12)
  /// A broken invariant.
  public static let internalError = StatusCode(rawValue: 13)
  /// The service is temporarily unavailable; the call may be retried.
  public static let unavailable = StatusCode(rawValue: 14)
  /// Stored data is lost or damaged.
  public static let dataLoss = StatusCode(rawValue: 15)
  /// The caller has no valid credentials.
  public static let unauthenticated = StatusCode(rawValue: 16)

  /// All seventeen codes, by number.
  public static let all: [StatusCode] = (0...16).map { StatusCode(rawValue: $0) }

  /// The canonical name, such as `INVALID_ARGUMENT`; the number for an unknown code.
  public var name: String {
    let index = Int(rawValue)
    return StatusCode.names.indices.contains(index) ? StatusCode.names[index] : String(rawValue)
  }

  /// The HTTP status of a response with this code; 500 for an unknown code.
  public var httpStatus: Int {
    let index = Int(rawValue)
    return StatusCode.httpStatuses.indices.contains(index) ? StatusCode.httpStatuses[index] : 500
  }

  /// The canonical name.
  public var description: String { name }

  private static let names = [
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
    "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
  ]
  private static let httpStatuses = [
    200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401,
  ]
}
