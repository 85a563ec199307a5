// Builds the HTTP responses of the Realtime Database's REST interface: JSON with Firebase's CORS headers.

import NIOCore
import NIOHTTP1
import Ports
import RealtimeModel

extension HTTPResponse {
  /// A response with a JSON body, or without a body.
  init(_ status: HTTPResponseStatus, json: [UInt8]? = nil) {
    self.init(
      status: status, headers: ["access-control-allow-origin": "*", "cache-control": "no-cache"])
    if let json {
      headers.add(name: "content-type", value: "application/json; charset=utf-8")
      body = ByteBuffer(bytes: json)
    }
  }

  /// An error response.
  init(_ error: RESTError) { self.init(error.status, json: error.body) }

  /// Adds the ETag, and allows scripts of other origins to read it.
  mutating func add(etag: String) {
    headers.add(name: "etag", value: etag)
    headers.add(name: "access-control-expose-headers", value: "ETag")
  }

  /// The response to a CORS preflight: every method and header of the interface is allowed.
  static func preflight(_ head: HTTPRequestHead) -> HTTPResponse {
    var response = HTTPResponse(.ok)
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
  /// The node's ETag: its hash without quotes, or `null_etag` for an empty node.
  var etag: String { isEmpty ? RESTRequest.nullETag : hash }
}

extension RESTRequest {
  /// The ETag of a location without data.
  static let nullETag = "null_etag"
}
