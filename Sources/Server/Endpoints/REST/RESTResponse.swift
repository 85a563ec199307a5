// An answer of the REST interface before it is put on a wire.

import NIOCore
import NIOHTTP1
import RealtimeModel

/// A status, headers and a body.
struct RESTResponse: Sendable {
  var status: HTTPResponseStatus
  var headers: HTTPHeaders
  var body: ByteBuffer?
  /// What follows the body, where that is only the beginning.
  var rest: RESTStream?

  /// An answer with a body of JSON, or without any.
  init(_ status: HTTPResponseStatus, json: [UInt8]? = nil) {
    self.status = status
    headers = ["access-control-allow-origin": "*", "cache-control": "no-cache"]
    if let json {
      headers.add(name: "content-type", value: "application/json; charset=utf-8")
      body = ByteBuffer(bytes: json)
    }
  }

  /// The answer to a refused request.
  init(_ error: RESTError) { self.init(error.status, json: error.body) }

  /// Adds the ETag, and lets scripts of other origins see it.
  mutating func add(etag: String) {
    headers.add(name: "etag", value: etag)
    headers.add(name: "access-control-expose-headers", value: "ETag")
  }

  /// The answer to a CORS preflight: everything that the interface has.
  static func preflight(_ head: HTTPRequestHead) -> RESTResponse {
    var response = RESTResponse(.ok)
    response.headers.add(
      name: "access-control-allow-methods", value: "GET, PUT, POST, PATCH, DELETE, OPTIONS")
    if let requested = head.headers.first(name: "access-control-request-headers") {
      response.headers.add(name: "access-control-allow-headers", value: requested)
    }
    if head.headers.contains(name: "access-control-request-private-network") {
      response.headers.add(name: "access-control-allow-private-network", value: "true")
    }
    response.headers.add(name: "access-control-max-age", value: "3600")
    return response
  }
}

extension Node {
  /// The node's ETag: its hash, bare; of nothing a word of its own.
  var etag: String { isEmpty ? RESTRequest.nullETag : hash }
}

extension RESTRequest {
  /// The ETag of a location without data.
  static let nullETag = "null_etag"
}
