// An HTTP service whose errors and CORS headers are those of Google's JSON APIs.

import FirestoreModel
package import NIOCore
package import NIOHTTP1
package import Ports

/// Serves HTTP requests in the manner of Google's JSON APIs.
package protocol GoogleHTTPService: HTTPService {
  /// Serves a request. Called on the event loop of its connection.
  func serve(_ request: HTTPRequest, _ responder: HTTPResponder, on connection: HTTPConnection)
  /// Returns the error response to a request whose head is sufficient to reject it; nil for any other request.
  func rejection(of head: HTTPRequestHead) -> HTTPResponse?
  /// Maximum size of the body of a request to this URI, in bytes.
  func bodyLimit(of uri: String, _ limits: PortLimits) -> Int
}

extension GoogleHTTPService {
  package func rejection(of head: HTTPRequestHead) -> HTTPResponse? { nil }

  package func bodyLimit(of uri: String, _ limits: PortLimits) -> Int { limits.maximumRequestBody }

  package func connectionLimits(_ port: PortLimits) -> HTTPConnectionLimits {
    HTTPConnectionLimits(maximumRequestBytes: port.http2.maximumBufferedRequestBytes)
  }

  package var acceptsCompressedBodies: Bool { true }

  package func bodyPlan(for head: HTTPRequestHead, _ port: PortLimits) -> HTTPBodyPlan {
    if let rejection = rejection(of: head) { return .reject(rejection) }
    return .collect(maximumBytes: bodyLimit(of: head.uri, port))
  }

  package func serve(
    _ head: HTTPRequestHead, _ body: ByteBuffer, _ exchange: HTTPExchange, on connection: HTTPConnection
  ) {
    do throws(HTTPRequestFailure) {
      let request = HTTPRequest(head: head, target: try RequestTarget(head.uri), body: body)
      serve(request, HTTPResponder(exchange), on: connection)
    } catch {
      exchange.respond(response(to: error))
    }
  }

  package func response(to failure: HTTPRequestFailure) -> HTTPResponse {
    switch failure {
    case .malformed(let reason): return .error(.invalidArgument(reason))
    case .forbidden(let reason): return .error(.permissionDenied(reason))
    case .bodyTimeout:
      let error = FirestoreError(.deadlineExceeded, "The request did not arrive completely in time.")
      return .error(error, as: .requestTimeout)
    case .bodyTooLarge(let bytes, let limit): return .error(FirestoreRequestLimits.tooLarge(bytes, limit))
    case .tooManyRequestBytes(let limit):
      return .error(
        .resourceExhausted("This connection's requests in progress exceed the limit of \(limit) bytes."))
    case .outOfMemory(let reason): return .error(.resourceExhausted(reason))
    case .tooManyUnreadBytes(let limit):
      return .error(
        .resourceExhausted("This connection's unread responses exceed the limit of \(limit) bytes."))
    case .unsupportedEncoding(let name):
      var response = HTTPResponse.error(
        .invalidArgument(
          "The Content-Encoding '\(name.prefix(40))' is not supported; send one of: gzip, deflate, identity."),
        as: .unsupportedMediaType)
      response.headers.add(name: "accept-encoding", value: "gzip, deflate")
      return response
    case .decompression(.tooLarge, let limit): return .error(FirestoreRequestLimits.tooLarge(nil, limit))
    case .decompression(.corrupt(let reason), _):
      return .error(
        .invalidArgument("The compressed body of the request cannot be decompressed: \(reason)."))
    }
  }

  package func addHeaders(to headers: inout HTTPHeaders, respondingTo request: HTTPRequestHead) {
    headers.addCORS(request)
  }
}

extension HTTPHeaders {
  /// Maximum length of a request header that the response repeats. Two such headers fit into one HTTP/2 frame of 16
  /// KiB, even if HPACK takes four bytes for each byte. A larger header block could end the connection.
  private static let maximumReflectedBytes = 2 << 10

  /// Reflects the origin, as credentialed requests of the web SDK require.
  fileprivate mutating func addCORS(_ request: HTTPRequestHead) {
    guard let origin = request.headers.first(name: "origin"), origin.utf8.count <= Self.maximumReflectedBytes
    else { return }
    add(name: "access-control-allow-origin", value: origin)
    add(name: "access-control-allow-credentials", value: "true")
    add(name: "vary", value: "Origin")
    guard request.method == .OPTIONS else { return }
    add(name: "access-control-allow-methods", value: "DELETE,GET,HEAD,PATCH,POST,PUT")
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
