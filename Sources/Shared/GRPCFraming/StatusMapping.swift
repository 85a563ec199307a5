// The tables between gRPC codes and the HTTP layers beneath: which HTTP status stands for a code in REST
// answers, which code stands for an HTTP answer that is not gRPC at all, and which for a reset stream.

extension GRPCStatus.Code {
  /// The HTTP status of a REST answer that carries this code.
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

  /// The code a client reports when a peer (often a proxy) answers with an HTTP status and no `grpc-status`.
  public init(answeredByHTTPStatus status: Int) {
    switch status {
    case 400: self = .internal
    case 401: self = .unauthenticated
    case 403: self = .permissionDenied
    case 404: self = .unimplemented
    case 429, 502, 503, 504: self = .unavailable
    default: self = .unknown
    }
  }

  /// The code a client reports when the server resets the stream with an HTTP/2 error code.
  public init(resetWithHTTP2Code code: UInt32) {
    switch code {
    case 0x7: self = .unavailable  // REFUSED_STREAM: the server did nothing, a retry is safe
    case 0x8: self = .cancelled  // CANCEL
    case 0xb: self = .resourceExhausted  // ENHANCE_YOUR_CALM
    case 0xc: self = .permissionDenied  // INADEQUATE_SECURITY
    default: self = .internal
    }
  }
}
