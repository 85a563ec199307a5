// A small HTTP server on loopback. It sends the responses that a test configures, and keeps the last request of each
// path.

import JSON
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix

final class HTTPReceiver: Sendable {
  struct Response: Sendable {
    var status: Int
    var body: [UInt8]
    /// The header `location`; nil for none.
    var location: String?
    /// Whether the request never gets a response.
    var isSilent = false
  }

  private struct State {
    var responses: [String: Response] = [:]
    var requests: [String: [UInt8]] = [:]
    var counts: [String: Int] = [:]
  }

  private let state: NIOLockedValueBox<State>
  private let channel: any Channel

  private init(_ channel: any Channel, _ state: NIOLockedValueBox<State>) {
    self.channel = channel
    self.state = state
  }

  static func start() async throws -> HTTPReceiver {
    let state = NIOLockedValueBox(State())
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(Handler(state))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    return HTTPReceiver(channel, state)
  }

  var baseURL: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

  func respond(to name: String, with response: Response) {
    state.withLockedValue { $0.responses[name] = response }
  }

  func clearRequests() { state.withLockedValue { $0.requests = [:] } }

  /// The body of the last request of a path; nil if there was none.
  func lastRequest(_ name: String) -> [UInt8]? { state.withLockedValue { $0.requests[name] } }

  /// The number of requests of a path.
  func requestCount(_ name: String) -> Int { state.withLockedValue { $0.counts[name] ?? 0 } }

  func stop() async { try? await channel.close().get() }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let state: NIOLockedValueBox<State>
    private var name = ""
    private var body: [UInt8] = []

    init(_ state: NIOLockedValueBox<State>) { self.state = state }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head):
        name = String(head.uri.dropFirst())
        body = []
      case .body(let bytes): body.append(contentsOf: bytes.readableBytesView)
      case .end:
        let (name, body) = (name, body)
        let response = state.withLockedValue { state in
          state.requests[name] = body
          state.counts[name, default: 0] += 1
          return state.responses[name] ?? Response(status: 404, body: [])
        }
        if response.isSilent { return }
        var head = HTTPResponseHead(
          version: .http1_1, status: .init(statusCode: response.status),
          headers: ["content-length": String(response.body.count), "content-type": "application/json"])
        if let location = response.location { head.headers.add(name: "location", value: location) }
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: response.body)))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      }
    }
  }
}
