// Routes the plain HTTP requests of the Firestore port by method and path.

import FirestoreModel
import NIOCore
package import NIOHTTP1
package import Ports

/// The destination of a request to the Firestore port.
enum FirestoreRoute: Equatable {
  /// A streaming method that is served over WebChannel.
  enum Channel: String {
    case listen = "Listen"
    case write = "Write"
  }

  /// A CORS preflight, of any path.
  case preflight
  /// The health check that tools poll until the server has started.
  case health
  /// The REST interface.
  case rest
  /// WebChannel.
  case channel(Channel)
  /// The connection test that old WebChannel clients make first.
  case channelTest
  /// A path that this module does not serve.
  case unknown

  init(_ method: HTTPMethod, path: String) {
    if method == .OPTIONS {
      self = .preflight
    } else if path == "/" {
      self = method == .GET || method == .HEAD ? .health : .unknown
    } else if path.hasPrefix("/v1/") || path.hasPrefix("/v1beta1/") {
      self = .rest
    } else if path == "/google.firestore.v1.Firestore/Listen/channel" {
      self = .channel(.listen)
    } else if path == "/google.firestore.v1.Firestore/Write/channel" {
      self = .channel(.write)
    } else if path == "/google.firestore.v1.Firestore/Listen/channel/test"
      || path == "/google.firestore.v1.Firestore/Write/channel/test"
    {
      self = .channelTest
    } else {
      self = .unknown
    }
  }
}

/// Serves additional paths of the Firestore port. Other modules implement and register it.
package protocol FirestoreRouteHandler: Sendable {
  /// Serves a request whose path no other part of the port serves. Returns false if this handler does not serve it
  /// either. The handler authenticates the caller.
  func serve(_ request: HTTPRequest, _ responder: HTTPResponder) -> Bool
}

/// Serves plain HTTP on the Firestore port.
package struct FirestoreHTTPService: GoogleHTTPService {
  package let rest: FirestoreREST
  /// Handlers of additional paths, in the order in which they are tried.
  package let handlers: [any FirestoreRouteHandler]
  /// Serves the WebChannel requests; nil on a port without WebChannel.
  package var webChannel: WebChannelService?

  /// Serves REST, the paths of `handlers`, and WebChannel unless it is nil.
  package init(
    rest: FirestoreREST, handlers: [any FirestoreRouteHandler], webChannel: WebChannelService? = nil
  ) {
    self.rest = rest
    self.handlers = handlers
    self.webChannel = webChannel
  }

  package func serve(_ request: HTTPRequest, _ responder: HTTPResponder, on connection: HTTPConnection) {
    switch FirestoreRoute(request.head.method, path: request.target.rawPath) {
    case .preflight: responder.respond(HTTPResponse(status: .ok))
    case .health: responder.respond(.text(.ok, "Ok\n"))
    case .rest: serveREST(request, responder, on: connection)
    case .channel(let stream):
      guard let webChannel else { return responder.respond(.notFound) }
      webChannel.serve(stream, request, responder)
    case .channelTest:
      guard let webChannel else { return responder.respond(.notFound) }
      webChannel.serveTest(request, responder)
    case .unknown: serveHandlers(request, responder)
    }
  }

  package func rejection(of head: HTTPRequestHead) -> HTTPResponse? {
    let path = String(head.uri.prefix { $0 != "?" })
    guard case .rest = FirestoreRoute(head.method, path: path) else { return nil }
    return rest.rejection(of: head)
  }

  /// A WebChannel request may carry several messages, so its body has a separate limit.
  package func bodyLimit(of uri: String, _ limits: PortLimits) -> Int {
    if let webChannel, case .channel = FirestoreRoute(.POST, path: String(uri.prefix { $0 != "?" })) {
      return webChannel.limits.maximumRequestBody
    }
    return limits.maximumRequestBody
  }

  private func serveHandlers(_ request: HTTPRequest, _ responder: HTTPResponder) {
    if !handlers.contains(where: { $0.serve(request, responder) }) { responder.respond(.notFound) }
  }

  private func serveREST(
    _ request: HTTPRequest, _ responder: HTTPResponder, on connection: HTTPConnection
  ) {
    do throws(FirestoreError) {
      // Other Google APIs, such as that of security rules, have paths below /v1/ too.
      guard let call = try rest.call(request) else { return serveHandlers(request, responder) }
      let bound = NIOLoopBound(connection, eventLoop: responder.eventLoop)
      responder.onLoop { exchange in
        bound.value.largeResponses.start(exchange, expectedBytes: rest.expectedBytes(of: call.method)) {
          rest.serve(call, request, responder)
        }
      }
    } catch {
      responder.respond(.error(error))
    }
  }
}

extension HTTPResponse {
  /// The response of a path that nothing serves.
  package static let notFound = HTTPResponse.text(.notFound, "Not Found\n")
}
