// How a call ended: a canonical code and a message for people. Both ends carry it in the trailers
// `grpc-status` and `grpc-message`.

/// The outcome of one gRPC call.
public struct GRPCStatus: Error, Sendable, Hashable {
  /// The canonical code.
  public var code: Code
  /// What a person reads; any Unicode text. Percent-encoded on the wire.
  public var message: String
  /// What programs read beside the code. Only what a server sends has any: a client leaves them in the trailers.
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
    /// The caller gave up.
    public static let cancelled = Code(rawValue: 1)
    /// No better code is known.
    public static let unknown = Code(rawValue: 2)
    /// The request is wrong whatever the state of the system.
    public static let invalidArgument = Code(rawValue: 3)
    /// The deadline passed first.
    public static let deadlineExceeded = Code(rawValue: 4)
    /// What was asked for does not exist.
    public static let notFound = Code(rawValue: 5)
    /// What was to be created exists.
    public static let alreadyExists = Code(rawValue: 6)
    /// The caller is known and may not.
    public static let permissionDenied = Code(rawValue: 7)
    /// A limit or a quota is reached.
    public static let resourceExhausted = Code(rawValue: 8)
    /// The system is not in the state that the call needs.
    public static let failedPrecondition = Code(rawValue: 9)
    /// A conflict with another call; try again from the start.
    public static let aborted = Code(rawValue: 10)
    /// Past the valid range.
    public static let outOfRange = Code(rawValue: 11)
    /// The method does not exist here.
    public static let unimplemented = Code(rawValue: 12)
    /// A broken invariant of the system or of the protocol.
    public static let `internal` = Code(rawValue: 13)
    /// Not now; try again with back-off.
    public static let unavailable = Code(rawValue: 14)
    /// Data is lost or corrupt.
    public static let dataLoss = Code(rawValue: 15)
    /// The caller has not shown who it is.
    public static let unauthenticated = Code(rawValue: 16)

    /// The code's canonical name, such as `NOT_FOUND`; `UNKNOWN` for a number that has none.
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
