// Makes the responses of the auth port: JSON, the error envelope, and CORS headers.

package import Identity
package import JSON
import NIOCore
package import NIOHTTP1
package import Ports

extension HTTPResponse {
  private static let jsonHeaders: HTTPHeaders = [
    "content-type": "application/json; charset=utf-8",
    // Responses contain tokens and accounts.
    "cache-control": "no-store",
  ]

  /// A response with a JSON object as its body.
  package static func identity(_ object: JSONObject, _ status: HTTPResponseStatus = .ok) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: jsonHeaders, body: ByteBuffer(bytes: JSONValue.object(object).json()))
  }

  /// A response with an error envelope of the API.
  package static func identity(_ error: IdentityError) -> HTTPResponse {
    var detail: JSONObject = [
      "message": .string(error.detail ?? error.message), "domain": .string("global"),
      "reason": .string(error.reason),
    ]
    if let location = error.location {
      detail["location"] = .string(location)
      detail["locationType"] = .string("header")
    }
    var body: JSONObject = [
      "code": .int(Int64(error.httpStatus)), "message": .string(error.message),
      "errors": .array([.object(detail)]),
    ]
    body.set("status", error.status)
    return .identity(["error": .object(body)], HTTPResponseStatus(statusCode: error.httpStatus))
  }
}

extension IdentityError {
  /// The error of a request that the connection rejects.
  init(_ failure: HTTPRequestFailure) {
    switch failure {
    case .malformed(let reason):
      self.init(400, "INVALID_ARGUMENT", reason, reason: "badRequest")
    case .forbidden(let reason): self.init(403, "PERMISSION_DENIED", reason, reason: "forbidden")
    case .bodyTimeout:
      self.init(
        408, "DEADLINE_EXCEEDED", "The request body did not arrive in time.", reason: "requestTimeout")
    case .bodyTooLarge(_, let limit):
      self.init(
        413, "INVALID_ARGUMENT", "The request body exceeds the limit of \(limit) bytes.",
        reason: "uploadTooLarge")
    case .tooManyRequestBytes(let limit):
      self.init(
        429, "RESOURCE_EXHAUSTED",
        "The requests of this connection in progress exceed the limit of \(limit) bytes.",
        reason: "rateLimitExceeded")
    case .outOfMemory(let reason):
      self.init(429, "RESOURCE_EXHAUSTED", reason, reason: "rateLimitExceeded")
    case .tooManyUnreadBytes(let limit):
      self.init(
        429, "RESOURCE_EXHAUSTED",
        "The unread responses of this connection exceed the limit of \(limit) bytes.",
        reason: "rateLimitExceeded")
    case .unsupportedEncoding(let name):
      self.init(
        415, "INVALID_ARGUMENT", "The Content-Encoding '\(name.prefix(40))' is not supported.",
        reason: "badRequest")
    case .decompression(.tooLarge, let limit):
      self.init(
        413, "INVALID_ARGUMENT", "The request body exceeds the limit of \(limit) bytes.",
        reason: "uploadTooLarge")
    case .decompression(.corrupt(let reason), _):
      self.init(
        400, "INVALID_ARGUMENT", "The request body cannot be decompressed: \(reason).", reason: "badRequest")
    }
  }
}

extension HTTPHeaders {
  /// Maximum length of a request header that the response repeats, so that the header block fits into a frame.
  private static let maximumReflectedBytes = 2 << 10

  /// Reflects the origin. Responses depend on tokens in the request and never on cookies, so every origin is allowed.
  mutating func addIdentityCORS(_ request: HTTPRequestHead) {
    guard let origin = request.headers.first(name: "origin"), origin.utf8.count <= Self.maximumReflectedBytes
    else { return }
    add(name: "access-control-allow-origin", value: origin)
    add(name: "vary", value: "Origin, Access-Control-Request-Headers")
    guard request.method == .OPTIONS else { return }
    add(name: "access-control-allow-methods", value: "GET,HEAD,PUT,PATCH,POST,DELETE")
    if let requested = request.headers.first(name: "access-control-request-headers"),
      requested.utf8.count <= Self.maximumReflectedBytes
    {
      add(name: "access-control-allow-headers", value: requested)
    }
    if request.headers.contains(name: "access-control-request-private-network") {
      add(name: "access-control-allow-private-network", value: "true")
    }
  }
}
