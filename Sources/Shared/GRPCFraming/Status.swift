// The status of a call: a canonical code and a message, in the trailers `grpc-status` and `grpc-message`.

/// The outcome of one gRPC call.
public struct GRPCStatus: Error, Sendable, Hashable {
  /// The canonical code.
  public var code: Code
  /// A message for people: any Unicode text, percent-encoded on the wire.
  public var message: String
  /// Machine-readable details of a server's status. A client does not parse them; they stay in the trailers.
  public var details = Details()

  /// Makes a status.
  public init(_ code: Code, _ message: String = "") {
    self.code = code
    self.message = message
  }

  /// The call succeeded.
  public static let ok = GRPCStatus(.ok)

  /// A canonical status code. Codes above 16 are kept as they were received.
  public struct Code: RawRepresentable, Sendable, Hashable {
    /// The number that `grpc-status` carries.
    public var rawValue: UInt32

    /// Makes a code from its number.
    public init(rawValue: UInt32) {
      self.rawValue = rawValue
    }

    /// Success.
    public static let ok = Code(rawValue: 0)
    /// The caller cancelled the call.
    public static let cancelled = Code(rawValue: 1)
    /// An unknown error.
    public static let unknown = Code(rawValue: 2)
    /// The request is invalid, whatever the state of the system.
    public static let invalidArgument = Code(rawValue: 3)
    /// The deadline passed before the call ended.
    public static let deadlineExceeded = Code(rawValue: 4)
    /// The requested entity does not exist.
    public static let notFound = Code(rawValue: 5)
    /// The entity to create exists already.
    public static let alreadyExists = Code(rawValue: 6)
    /// The caller is known but not permitted.
    public static let permissionDenied = Code(rawValue: 7)
    /// A quota or limit is exhausted.
    public static let resourceExhausted = Code(rawValue: 8)
    /// The system is not in the state that the call needs.
    public static let failedPrecondition = Code(rawValue: 9)
    /// The call conflicts with another; the complete transaction may be retried.
    public static let aborted = Code(rawValue: 10)
    /// Past the valid range.
    public static let outOfRange = Code(rawValue: 11)
    /// The method is not implemented.
    public static let unimplemented = Code(rawValue: 12)
    /// A broken invariant of the system or of the protocol.
    public static let `internal` = Code(rawValue: 13)
    /// The service is temporarily unavailable; the call may be retried after a backoff.
    public static let unavailable = Code(rawValue: 14)
    /// Data is lost or corrupt.
    public static let dataLoss = Code(rawValue: 15)
    /// The caller has no valid credentials.
    public static let unauthenticated = Code(rawValue: 16)

    /// The code's canonical name, such as `NOT_FOUND`; `UNKNOWN` for an unknown number.
    public var name: String {
      rawValue < UInt32(Self.names.count) ? Self.names[Int(rawValue)] : "UNKNOWN"
    }

    private static let names = [
      "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
      "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
      "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
    ]
  }
}

extension GRPCStatus: CustomStringConvertible {
  /// The code's name and the message, for logs.
  public var description: String { message.isEmpty ? code.name : "\(code.name): \(message)" }
}
