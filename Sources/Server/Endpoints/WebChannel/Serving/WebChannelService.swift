// WebChannel on the Firestore port: finds the session of each request, and opens sessions.

import FirestoreModel
import GRPCFraming
import NIOCore
import NIOHPACK
import NIOHTTP1
import RealtimeModel

/// Serves the channels of both streams.
struct WebChannelService: Sendable {
  private let firestore: FirestoreService
  private let sessions: WebChannelSessions

  init(_ firestore: FirestoreService, _ limits: PortLimits) {
    self.firestore = firestore
    sessions = WebChannelSessions(limits)
  }

  /// Serves one request to a stream's channel. Called on the event loop of its connection.
  func serve(_ stream: FirestoreRoute.Channel, _ http: HTTPRequest, _ responder: HTTPResponder) {
    let request = WebChannelRequest(http, responder)
    guard http.head.method == .GET || http.head.method == .POST else {
      return request.refuse(WebChannelRefusal(status: 405, text: "WebChannel knows GET and POST only."))
    }
    do throws(WebChannelRefusal) {
      switch try WebChannelQuery(isPost: http.head.method == .POST, http.target) {
      case .handshake(let headers, let wantsSessionHeader):
        let request = request.withSession(wantsSessionHeader ? Self.randomID() : nil)
        read(http.body, request) { body throws(WebChannelRefusal) in
          try open(stream, body, HeaderBlock(body.headers ?? headers ?? ""), request)
        }
      case .forward(let id, let acknowledged):
        let session = try session(id, stream)
        read(http.body, request) { body in
          session.onLoop { $0.forward(body, acknowledged: acknowledged, request) }
        }
      case .back(let id, let asked):
        let session = try session(id, stream)
        responder.endWithPeer()
        session.onLoop { $0.open(asked, request) }
      case .terminate(let id):
        sessions.responder(id, stream)?.onLoop { $0.close() }
        request.answer(ByteBuffer())
      }
    } catch {
      request.refuse(error)
    }
  }

  /// Serves the test that clients of old made before their first handshake: is there a proxy that withholds the first
  /// part of an answer until the rest has come?
  func serveTest(_ http: HTTPRequest, _ responder: HTTPResponder) {
    let request = WebChannelRequest(http, responder)
    if http.target["MODE"] == "init" {
      // No prefix for the host of back channels, and none for hosts that are blocked.
      return request.answer(ByteBuffer(string: "[\"\",\"\"]"))
    }
    guard http.target["TYPE"] == "xmlhttp" else {
      return request.refuse(.malformed("The test of a channel is asked for by MODE=init or by TYPE=xmlhttp."))
    }
    request.begin()
    responder.write(ByteBuffer(string: "11111"))
    responder.eventLoop.scheduleTask(in: sessions.limits.proxyTestPause) {
      responder.write(ByteBuffer(string: "2"))
      responder.finish()
    }
  }

  /// Reads a body, a large one beside the event loop, and goes on with it on the request's event loop. Bodies of one
  /// session may overtake each other: what they bring has numbers.
  private func read(
    _ body: ByteBuffer, _ request: WebChannelRequest,
    then next: @escaping @Sendable (ForwardBody) throws(WebChannelRefusal) -> Void
  ) {
    let limits = sessions.limits
    let proceed = { @Sendable (body: Result<ForwardBody, WebChannelRefusal>) in
      do throws(WebChannelRefusal) { try next(try body.get()) } catch { request.refuse(error) }
    }
    let parse = { @Sendable () -> Result<ForwardBody, WebChannelRefusal> in
      do throws(WebChannelRefusal) {
        return .success(try ForwardBody(body, limits: limits))
      } catch {
        return .failure(error)
      }
    }
    guard body.readableBytes > WebChannelConversation.largeBytes else { return proceed(parse()) }
    request.responder.start {
      let parsed = parse()
      request.responder.eventLoop.execute { proceed(parsed) }
    }
  }

  private func session(
    _ id: String, _ stream: FirestoreRoute.Channel
  ) throws(WebChannelRefusal) -> WebChannelResponder {
    guard let session = sessions.responder(id, stream) else { throw .unknownSession }
    return session
  }

  private func open(
    _ stream: FirestoreRoute.Channel, _ body: ForwardBody, _ block: HeaderBlock, _ request: WebChannelRequest
  ) throws(WebChannelRefusal) {
    let loop = request.responder.eventLoop
    let codec = StreamCodec(stream)
    let conversation = WebChannelConversation(Self.randomID(), codec, sessions, on: loop)
    let responder = WebChannelResponder(conversation, on: loop, encode: codec.encode)
    guard sessions.add(conversation.id, responder, stream) else {
      throw .overloaded(
        "This server has \(sessions.limits.maximumSessions) sessions open, and opens no more.")
    }
    var head = GRPCRequestHead(path: "/\(FirestoreService.name)/\(stream.rawValue)")
    if let authorization = block["authorization"] ?? request.header("authorization") {
      head.headers.add(name: "authorization", value: authorization)
    }
    let call: any StreamCall =
      switch stream {
      case .listen: ListenCall(firestore, head, responder)
      case .write: WriteCall(firestore, head, responder)
      }
    conversation.begin(call, body, request)
  }

  /// Some 130 random bits.
  private static func randomID() -> String { RandomName.make(22) }
}
