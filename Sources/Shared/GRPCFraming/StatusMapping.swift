// Maps gRPC codes to HTTP statuses, for REST responses. Maps HTTP statuses of responses that are not gRPC, and HTTP/2
// error codes of reset streams, to gRPC codes.

extension GRPCStatus.Code {
  /// The HTTP status of a REST response with this code.
  public var httpStatus: Int {
    switch self {
    case .ok: 200
    case .invalidArgument, .failedPrecondition, .outOfRange: 400
    case .unauthenticated: 401
    case .permissionDenied: 403
    case .notFound: 404
    case .aborted, .alreadyExists: 409
    case .resourceExhausted: 429
    case .cancelled: 499
    case .unimplemented: 501
    case .unavailable: 503
    case .deadlineExceeded: 504
    default: 500
    }
  }

  /// The code that a client reports for an HTTP response without `grpc-status`, often from a proxy.
  public init(plainHTTPStatus status: Int) {
    switch status {
    case 400: self = .internal
    case 401: self = .unauthenticated
    case 403: self = .permissionDenied
    case 404: self = .unimplemented
    case 429, 502, 503, 504: self = .unavailable
    default: self = .unknown
    }
  }

  /// The code that a client reports when the server resets the stream with an HTTP/2 error code.
  public init(resetWithHTTP2Code code: UInt32) {
    switch code {
    // REFUSED_STREAM: the server did not process the request, so a retry is safe.
    case 0x7: self = .unavailable
    case 0x8: self = .cancelled  // CANCEL
    case 0xb: self = .resourceExhausted  // ENHANCE_YOUR_CALM
    case 0xc: self = .permissionDenied  // INADEQUATE_SECURITY
    default: self = .internal
    }
  }
}
