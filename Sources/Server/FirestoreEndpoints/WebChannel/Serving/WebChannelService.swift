// The WebChannel service of the Firestore port: opens sessions and dispatches each request to its session.

import FirestoreModel
import GRPCFraming
import NIOCore
import NIOHPACK
import NIOHTTP1
import Ports
import RealtimeModel

/// Serves the Listen and Write streams over WebChannel.
package struct WebChannelService: Sendable {
  private let firestore: FirestoreService
  private let sessions: WebChannelSessionRegistry

  init(_ firestore: FirestoreService, _ port: PortLimits, _ limits: WebChannelLimits) {
    self.firestore = firestore
    sessions = WebChannelSessionRegistry(port, limits)
  }

  /// The limits of the port's sessions.
  var limits: WebChannelLimits { sessions.limits }

  /// Serves one request. Called on the event loop of the request's connection.
  func serve(_ stream: FirestoreRoute.Channel, _ http: HTTPRequest, _ responder: HTTPResponder) {
    let request = WebChannelRequest(http, responder)
    guard http.head.method == .GET || http.head.method == .POST else {
      return request.reject(WebChannelError(status: 405, message: "WebChannel supports only GET and POST."))
    }
    do throws(WebChannelError) {
      switch try WebChannelOperation(isPost: http.head.method == .POST, http.target) {
      case .handshake(let headers, let wantsSessionHeader):
        let request = request.withSession(wantsSessionHeader ? Self.randomID() : nil)
        read(http.body, request) { body throws(WebChannelError) in
          let block = HeaderBlock([body.headers, headers].compactMap(\.self).joined(separator: "\n"))
          try open(stream, body, block, request)
        }
      case .forward(let id, let acknowledged):
        let session = try session(id, stream)
        read(http.body, request) { body in
          session.onLoop { $0.forward(body, acknowledged: acknowledged, request) }
        }
      case .back(let id, var backChannel):
        let session = try session(id, stream)
        backChannel.occupiesConnection = http.head.version.major < 2
        responder.endWithPeer()
        session.onLoop { [backChannel] in $0.open(backChannel, request) }
      case .terminate(let id):
        sessions.responder(id, stream)?.onLoop { $0.close() }
        request.respond(ByteBuffer())
      }
    } catch {
      request.reject(error)
    }
  }

  /// Serves the test that old clients make before their first handshake, to detect a proxy that buffers responses.
  func serveTest(_ http: HTTPRequest, _ responder: HTTPResponder) {
    let request = WebChannelRequest(http, responder)
    if http.target["MODE"] == "init" {
      // Clients expect two host prefixes, for back channels and for blocked hosts. Both are empty.
      return request.respond(ByteBuffer(string: "[\"\",\"\"]"))
    }
    guard http.target["TYPE"] == "xmlhttp" else {
      return request.reject(.malformed("The test of a channel is requested by MODE=init or by TYPE=xmlhttp."))
    }
    request.begin()
    responder.write(ByteBuffer(string: "11111"))
    responder.eventLoop.scheduleTask(in: sessions.limits.proxyTestPause) {
      responder.write(ByteBuffer(string: "2"))
      responder.finish()
    }
  }

  /// Parses a body and continues on the request's event loop. Large bodies are parsed off the event loop.
  ///
  /// Bodies of one session may finish in any order, since their messages have numbers.
  private func read(
    _ body: ByteBuffer, _ request: WebChannelRequest,
    then next: @escaping @Sendable (ForwardBody) throws(WebChannelError) -> Void
  ) {
    let limits = sessions.limits
    let proceed = { @Sendable (body: Result<ForwardBody, WebChannelError>) in
      do throws(WebChannelError) { try next(try body.get()) } catch { request.reject(error) }
    }
    let parse = { @Sendable () -> Result<ForwardBody, WebChannelError> in
      do throws(WebChannelError) {
        return .success(try ForwardBody(body, limits: limits))
      } catch {
        return .failure(error)
      }
    }
    guard body.readableBytes > WebChannelSessionHandler.maximumInlineBytes else { return proceed(parse()) }
    request.responder.start {
      let parsed = parse()
      request.responder.eventLoop.execute { proceed(parsed) }
    }
  }

  private func session(
    _ id: String, _ stream: FirestoreRoute.Channel
  ) throws(WebChannelError) -> WebChannelResponder {
    guard let session = sessions.responder(id, stream) else { throw .unknownSession }
    return session
  }

  private func open(
    _ stream: FirestoreRoute.Channel, _ body: ForwardBody, _ block: HeaderBlock, _ request: WebChannelRequest
  ) throws(WebChannelError) {
    let loop = request.responder.eventLoop
    let codec = StreamCodec(stream)
    let handler = WebChannelSessionHandler(
      Self.randomID(), codec, sessions, address: request.responder.remoteAddress?.ipAddress ?? "", on: loop)
    let responder = WebChannelResponder(handler, on: loop, encode: codec.encode)
    guard sessions.add(handler.id, responder, stream) else {
      throw .overloaded(
        "This server has \(sessions.limits.maximumSessions) sessions open, and opens no more.")
    }
    var head = GRPCRequestHead(path: "/\(FirestoreService.name)/\(stream.rawValue)")
    for authorization in block.all("authorization") + request.headers("authorization") {
      head.headers.add(name: "authorization", value: authorization)
    }
    let call: any StreamCall =
      switch stream {
      case .listen: ListenCall(firestore, head, responder)
      case .write: WriteCall(firestore, head, responder)
      }
    handler.begin(call, body, request)
  }

  /// Returns a random name with about 130 bits of entropy.
  private static func randomID() -> String { RandomName.make(22) }
}
