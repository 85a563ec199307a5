// A complete emulator in this process with an auth port, for one test.

import Foundation
import HearthServer
import JSON
import NIOCore
import NIOHTTP1
import NIOPosix

struct AuthTestServer: Sendable {
  static let project = "demo-auth"

  let server: HearthServer
  let client: AuthClient

  /// Runs a test against a new server, and stops the server afterwards.
  static func with<Value>(
    _ storage: HearthConfiguration.Storage = .ephemeral,
    _ change: (inout HearthConfiguration) -> Void = { _ in },
    _ body: (AuthTestServer) async throws -> Value
  ) async throws -> Value {
    var configuration = HearthConfiguration.forTesting(storage: storage)
    configuration.database = nil
    configuration.auth = .init(port: 0)
    configuration.project = project
    change(&configuration)
    let server = HearthServer(configuration)
    try await server.start()
    let testServer = AuthTestServer(server: server, client: AuthClient(port: server.authPort ?? 0))
    let result: Result<Value, any Error>
    do { result = .success(try await body(testServer)) } catch { result = .failure(error) }
    await server.stop()
    return try result.get()
  }

  /// Returns a unique path for the directory of one test. The directory does not exist yet.
  static func temporaryDirectory() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)").path
  }
}

/// A response of the auth port.
struct AuthReply: Sendable {
  var status: Int
  var headers: HTTPHeaders
  var body: [UInt8]

  /// The body as JSON; null if it is not JSON.
  var json: JSONValue { (try? JSONValue(json: body)) ?? .null }

  subscript(name: String) -> JSONValue? { json[name] }

  /// The message of the error envelope; nil for a success.
  var error: String? { json["error"]?["message"]?.string }
}

/// Sends HTTP/1.1 requests, each over a new connection.
struct AuthClient: Sendable {
  let port: Int

  /// Sends a request.
  func send(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8]? = nil
  ) async throws -> AuthReply {
    let group = MultiThreadedEventLoopGroup.singleton
    let reply = group.next().makePromise(of: AuthReply.self)
    let channel: any Channel
    do {
      channel = try await ClientBootstrap(group: reply.futureResult.eventLoop)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHTTPClientHandlers()
            try channel.pipeline.syncOperations.addHandler(ReplyCollector(reply))
          }
        }
        .connect(host: "127.0.0.1", port: port).get()
    } catch {
      reply.fail(error)
      throw error
    }
    var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: method), uri: target)
    head.headers.add(name: "host", value: "127.0.0.1:\(port)")
    head.headers.add(name: "connection", value: "close")
    for (name, value) in headers { head.headers.add(name: name, value: value) }
    if let body { head.headers.add(name: "content-length", value: String(body.count)) }
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    if let body {
      channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
    }
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    return try await reply.futureResult.get()
  }

  /// Posts JSON as a client with an API key.
  func post(_ path: String, _ body: JSONObject, headers: [(String, String)] = []) async throws -> AuthReply {
    try await send(
      "POST", path + "?key=fake-api-key", headers: headers + [("content-type", "application/json")],
      body: JSONValue.object(body).json())
  }

  /// Posts JSON with the token `owner`, which makes the caller an administrator of an emulator.
  func administer(_ path: String, _ body: JSONObject) async throws -> AuthReply {
    try await send(
      "POST", path, headers: [("authorization", "Bearer owner"), ("content-type", "application/json")],
      body: JSONValue.object(body).json())
  }

  private final class ReplyCollector: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private struct Closed: Error {}

    private let promise: EventLoopPromise<AuthReply>
    private var reply: AuthReply?

    init(_ promise: EventLoopPromise<AuthReply>) { self.promise = promise }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head): reply = AuthReply(status: Int(head.status.code), headers: head.headers, body: [])
      case .body(let bytes): reply?.body.append(contentsOf: bytes.readableBytesView)
      case .end:
        if let reply { promise.succeed(reply) }
        context.close(promise: nil)
      }
    }

    func channelInactive(context: ChannelHandlerContext) { promise.fail(Closed()) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      promise.fail(error)
      context.close(promise: nil)
    }
  }
}
