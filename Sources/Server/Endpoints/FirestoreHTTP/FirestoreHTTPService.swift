// What the Firestore port serves over plain HTTP, by method and path: the one place that knows its paths.

import FirestoreModel
import NIOCore
import NIOHTTP1

/// Where a request to the Firestore port goes.
enum FirestoreRoute: Equatable {
  /// A stream that WebChannel carries.
  enum Channel: String {
    case listen = "Listen"
    case write = "Write"
  }

  /// A CORS preflight, of any path.
  case preflight
  /// The health check that tools wait for.
  case health
  /// The REST interface.
  case rest
  /// What only an emulator serves.
  case emulator
  /// WebChannel.
  case channel(Channel)
  /// The test that WebChannel's clients of old make before.
  case channelTest
  /// Nothing.
  case unknown

  init(_ method: HTTPMethod, path: String) {
    if method == .OPTIONS {
      self = .preflight
    } else if path == "/" {
      self = method == .GET || method == .HEAD ? .health : .unknown
    } else if path.hasPrefix("/v1/") || path.hasPrefix("/v1beta1/") {
      self = .rest
    } else if path.hasPrefix("/emulator/v1/") || path == "/reset" {
      self = .emulator
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

  /// The largest body of a request: one of WebChannel may bring several messages.
  static func bodyLimit(of uri: String, _ limits: PortLimits) -> Int {
    if case .channel = FirestoreRoute(.POST, path: String(uri.prefix { $0 != "?" })) {
      return limits.webChannel.maximumRequestBody
    }
    return limits.maximumRequestBody
  }
}

/// Serves plain HTTP on the Firestore port.
struct FirestoreHTTPService: PlainHTTPService {
  let rest: FirestoreREST
  /// Nil in production.
  let emulator: FirestoreEmulator?
  /// The streams over WebChannel; nil on a port without any.
  var webChannel: WebChannelService?

  func serve(_ request: HTTPRequest, _ responder: HTTPResponder, on connection: FirestoreHTTPConnection) {
    switch FirestoreRoute(request.head.method, path: request.target.rawPath) {
    case .preflight: responder.answer(HTTPResponse(status: .ok))
    case .health: responder.answer(.text(.ok, "Ok\n"))
    case .rest: serveREST(request, responder, on: connection)
    case .emulator:
      guard let emulator else { return responder.answer(.unknown) }
      emulator.serve(request, responder)
    case .channel(let stream):
      guard let webChannel else { return responder.answer(.unknown) }
      webChannel.serve(stream, request, responder)
    case .channelTest:
      guard let webChannel else { return responder.answer(.unknown) }
      webChannel.serveTest(request, responder)
    case .unknown: responder.answer(.unknown)
    }
  }

  func refusal(of head: HTTPRequestHead) -> HTTPResponse? {
    let path = String(head.uri.prefix { $0 != "?" })
    guard case .rest = FirestoreRoute(head.method, path: path) else { return nil }
    return rest.refusal(of: head)
  }

  private func serveREST(
    _ request: HTTPRequest, _ responder: HTTPResponder, on connection: FirestoreHTTPConnection
  ) {
    do throws(FirestoreError) {
      guard let call = try rest.call(request) else { return responder.answer(.unknown) }
      connection.admit(responder, expecting: rest.expectedBytes(of: call.method)) {
        rest.serve(call, request, responder)
      }
    } catch {
      responder.answer(.error(error))
    }
  }
}

extension HTTPResponse {
  /// The answer of a path that nothing is served on.
  static let unknown = HTTPResponse.text(.notFound, "Not Found\n")
}
