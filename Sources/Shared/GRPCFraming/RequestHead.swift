// The request head of a gRPC call. This file validates the headers, and builds the response to invalid headers.

public import NIOHPACK

/// The validated head of one call.
public struct GRPCRequestHead: Sendable {
  /// The full method path, such as `/google.firestore.v1.Firestore/Commit`.
  public var path: String
  /// The timeout of the call; nil for none.
  public var timeout: GRPCTimeout?
  /// The encoding of compressed messages; nil if messages must not be compressed.
  public var encoding: String?
  /// All headers as received, for metadata such as `authorization`.
  public var headers: HPACKHeaders

  /// Creates a head.
  public init(path: String, timeout: GRPCTimeout? = nil, headers: HPACKHeaders = [:]) {
    self.path = path
    self.timeout = timeout
    self.headers = headers
  }

  /// The path's service, without slashes; empty if the path has only one part.
  public var service: Substring { parts.service }

  /// The path's method; empty if the path has only one part.
  public var method: Substring { parts.method }

  private var parts: (service: Substring, method: Substring) {
    let trimmed = path.dropFirst(path.hasPrefix("/") ? 1 : 0)
    guard let slash = trimmed.lastIndex(of: "/") else { return ("", "") }
    return (trimmed[..<slash], trimmed[trimmed.index(after: slash)...])
  }

  /// The first value of a metadata key with a lower-case name.
  public func metadata(_ name: String) -> String? {
    headers.first(name: name)
  }

  /// Whether the content type is gRPC: `application/grpc`, optionally with `+proto` or parameters. gRPC-Web is another
  /// protocol.
  public static func isGRPC(_ headers: HPACKHeaders) -> Bool {
    guard let type = headers.first(name: "content-type") else { return false }
    return isGRPC(contentType: type)
  }

  static func isGRPC(contentType: String) -> Bool {
    let prefix = "application/grpc".utf8
    let value = contentType.utf8
    guard value.count >= prefix.count, zip(value, prefix).allSatisfy({ $0 | 0x20 == $1 || $0 == $1 }) else {
      return false
    }
    guard value.count > prefix.count else { return true }
    let rest = contentType.dropFirst(prefix.count).lowercased()
    return rest.hasPrefix(";") || rest == "+proto" || rest.hasPrefix("+proto;")
  }

  /// Parses and validates request headers.
  ///
  /// - Throws: the complete response to headers that are not a valid gRPC request.
  public static func parse(
    _ headers: HPACKHeaders, accepting encodings: GRPCEncodings = .identity
  ) throws(GRPCRejection) -> GRPCRequestHead {
    guard isGRPC(headers) else { throw .http(415, "This path takes the content type application/grpc.") }
    guard headers.first(name: ":method") == "POST" else { throw .http(405, "A gRPC request is a POST.") }
    guard let path = headers.first(name: ":path"), path.hasPrefix("/") else {
      throw .status(GRPCStatus(.unimplemented, "The request names no method."))
    }
    guard headers.first(name: "te") == "trailers" || headers[canonicalForm: "te"].contains("trailers") else {
      throw .status(GRPCStatus(.invalidArgument, "A gRPC request must carry the header 'te: trailers'."))
    }
    var encoding = headers.first(name: "grpc-encoding")
    if encoding == "identity" { encoding = nil }
    if let encoding, !encodings.names.contains(encoding) { throw .unsupportedEncoding(encoding, encodings) }
    var timeout: GRPCTimeout?
    if let value = headers.first(name: "grpc-timeout") {
      guard let parsed = GRPCTimeout(headerValue: value) else {
        throw .status(
          GRPCStatus(.invalidArgument, "The header 'grpc-timeout' is malformed: '\(value.prefix(40))'."))
      }
      timeout = parsed
    }
    var head = GRPCRequestHead(path: path, timeout: timeout, headers: headers)
    head.encoding = encoding
    return head
  }
}

/// The response to headers that are not a valid gRPC request: one header block that ends the stream.
public struct GRPCRejection: Error, Sendable, Equatable {
  /// The header block to send, with the end of the stream.
  public var headers: HPACKHeaders
  /// The status that a gRPC client reports.
  public var status: GRPCStatus

  static func status(_ status: GRPCStatus) -> GRPCRejection {
    GRPCRejection(headers: GRPCServerStream.trailersOnly(status), status: status)
  }

  static func http(_ code: Int, _ message: String) -> GRPCRejection {
    let status = GRPCStatus(.init(plainHTTPStatus: code), message)
    // HTTP/2 requires the pseudo-header to come first.
    var headers: HPACKHeaders = [":status": String(code)]
    for (name, value, _) in GRPCServerStream.trailersOnly(status) where name != ":status" {
      headers.add(name: name, value: value)
    }
    if code == 405 { headers.add(name: "allow", value: "POST") }
    return GRPCRejection(headers: headers, status: status)
  }

  static func unsupportedEncoding(_ name: String, _ encodings: GRPCEncodings) -> GRPCRejection {
    let status = GRPCStatus(
      .unimplemented,
      "The encoding '\(name.prefix(40))' is not supported; send one of: \(encodings.acceptEncoding).")
    var headers = GRPCServerStream.trailersOnly(status)
    headers.add(name: GRPCEncodings.acceptEncodingHeader, value: encodings.acceptEncoding)
    return GRPCRejection(headers: headers, status: status)
  }

  static func tooManyHeaders(_ limit: Int) -> GRPCRejection {
    .status(GRPCStatus(.resourceExhausted, "The request's headers take more than \(limit) bytes."))
  }
}
