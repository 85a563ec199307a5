// The canned server: an HTTP server that sends responses that the test defines, because a Hearth server never sends
// them.

import Foundation
import Locking
import NIOCore
import NIOHTTP1
import NIOPosix

/// A request that the server received.
struct ReceivedRequest: Sendable {
  let uri: String
  let headers: [String: String]
  let body: Data

  /// The operation, such as `accounts:signUp`.
  var operation: String {
    let path = uri.split(separator: "?").first ?? ""
    return path.split(separator: "/").suffix(path.hasSuffix("token") ? 1 : path.contains("/mfa") ? 2 : 1)
      .joined(separator: "/")
  }

  /// The members of the JSON body.
  var json: [String: Any] {
    (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] ?? [:]
  }

  func string(_ name: String) -> String? { json[name] as? String }
}

/// A response that the test defines.
struct CannedResponse: Sendable {
  var status = 200
  var headers: [String: String] = [:]
  var body = "{}"

  static func ok(_ body: String) -> CannedResponse { CannedResponse(body: body) }

  /// An error response of the API.
  static func error(_ message: String, status: Int = 400) -> CannedResponse {
    CannedResponse(
      status: status,
      body:
        #"{"error":{"code":\#(status),"message":"\#(message)","errors":[{"message":"m","reason":"invalid"}]}}"#
    )
  }
}

/// A server on a free local port.
final class CannedServer: Sendable {
  typealias Responder = @Sendable (ReceivedRequest) async -> CannedResponse

  private let channel: any Channel
  private let received: Guarded<[ReceivedRequest]>

  private init(_ channel: any Channel, _ received: Guarded<[ReceivedRequest]>) {
    self.channel = channel
    self.received = received
  }

  static func start(_ responder: @escaping Responder) async throws -> CannedServer {
    let received = Guarded<[ReceivedRequest]>([])
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(
            Handler { request in
              received.withLock { $0.append(request) }
              return await responder(request)
            })
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    return CannedServer(channel, received)
  }

  var port: Int { channel.localAddress?.port ?? 0 }
  var requests: [ReceivedRequest] { received.withLock { $0 } }
  var operations: [String] { requests.map(\.operation) }

  func stop() async {
    try? await channel.close()
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let responder: Responder
    private var head: HTTPRequestHead?
    private var body = ByteBuffer()

    init(_ responder: @escaping Responder) {
      self.responder = responder
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head):
        self.head = head
        body.clear()
      case .body(var part):
        body.writeBuffer(&part)
      case .end:
        guard let head else { return }
        let request = ReceivedRequest(
          uri: head.uri,
          headers: Dictionary(head.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first },
          body: Data(body.readableBytesView))
        let channel = context.channel
        let responder = responder
        Task {
          let response = await responder(request)
          var headers = HTTPHeaders(response.headers.map { ($0.key, $0.value) })
          headers.add(name: "content-length", value: "\(response.body.utf8.count)")
          let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: response.status), headers: headers)
          channel.write(HTTPServerResponsePart.head(head), promise: nil)
          channel.write(
            HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: response.body))), promise: nil)
          channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
        }
      }
    }
  }
}
