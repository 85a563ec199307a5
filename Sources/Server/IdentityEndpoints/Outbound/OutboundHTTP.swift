// Sends HTTP requests to configured URLs: blocking functions, webhooks, and keys of other issuers.
//
// Invariant: a request ends within its time limit and reads at most `maximumBytes` of the response. Redirects are not
// followed.

import Foundation
import NIOConcurrencyHelpers
package import NIOCore
package import NIOHTTP1
import NIOPosix
import NIOSSL

/// A client for single HTTP/1.1 requests.
package final class OutboundHTTP: Sendable {
  /// A complete response.
  package struct Response: Sendable {
    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
  }

  /// The failure of a request without a complete response.
  package struct Failure: Error, Sendable, CustomStringConvertible {
    package var description: String
  }

  /// Maximum bytes of a response by default.
  package static let maximumBytes = 1 << 20
  private static let connectSeconds: Int64 = 10

  private let group: any EventLoopGroup
  private let maximumBytes: Int
  private let tls = NIOLockedValueBox<NIOSSLContext?>(nil)

  /// Creates a client whose connections run on an event loop group.
  /// - Parameter maximumBytes: the maximum bytes of a response.
  package init(group: any EventLoopGroup, maximumBytes: Int = OutboundHTTP.maximumBytes) {
    self.group = group
    self.maximumBytes = maximumBytes
  }

  /// Posts JSON.
  /// - Parameter seconds: the time within which the response must be complete.
  package func post(_ json: [UInt8], to address: String, seconds: Int64) async throws -> Response {
    try await send(.POST, address, json, seconds)
  }

  /// Gets a document.
  /// - Parameter seconds: the time within which the response must be complete.
  package func get(_ address: String, seconds: Int64) async throws -> Response {
    try await send(.GET, address, nil, seconds)
  }

  /// Sends a request to a server that listens on a socket in the file system.
  /// - Parameter seconds: the time within which the response must be complete.
  package func send(
    _ method: HTTPMethod, path: String, body: [UInt8]?, socket: String, seconds: Int64
  ) async throws -> Response {
    try await send(method, "http://localhost" + path, body, seconds, socket: socket)
  }

  /// Sends a request of an administrator.
  /// - Parameters:
  ///   - token: the bearer token.
  ///   - seconds: the time within which the response must be complete.
  package func send(
    _ method: HTTPMethod, to address: String, body: [UInt8]?, token: String, seconds: Int64
  ) async throws -> Response {
    try await send(method, address, body, seconds, authorization: "Bearer \(token)")
  }

  private func send(
    _ method: HTTPMethod, _ address: String, _ body: [UInt8]?, _ seconds: Int64, socket: String? = nil,
    authorization: String? = nil
  ) async throws -> Response {
    guard let url = URLComponents(string: address), let host = url.host, !host.isEmpty,
      url.scheme == "http" || url.scheme == "https"
    else { throw Failure(description: "the address is not an absolute http or https URL") }
    let context = url.scheme == "https" ? try tlsContext() : nil
    var uri = url.percentEncodedPath.isEmpty ? "/" : url.percentEncodedPath
    if let query = url.percentEncodedQuery { uri += "?" + query }
    var head = HTTPRequestHead(version: .http1_1, method: method, uri: uri)
    let port = url.port ?? (context == nil ? 80 : 443)
    head.headers.add(name: "host", value: url.port.map { "\(host):\($0)" } ?? host)
    head.headers.add(name: "connection", value: "close")
    head.headers.add(name: "accept", value: "application/json")
    if let authorization { head.headers.add(name: "authorization", value: authorization) }
    if let body {
      head.headers.add(name: "content-type", value: "application/json")
      head.headers.add(name: "content-length", value: String(body.count))
    }
    let request = head
    let maximumBytes = maximumBytes
    let unbracketedHost = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    let response = group.next().makePromise(of: Response.self)
    let bootstrap = ClientBootstrap(group: response.futureResult.eventLoop)
      .connectTimeout(.seconds(min(seconds, Self.connectSeconds)))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if let context {
            let isAddress = (try? SocketAddress(ipAddress: unbracketedHost, port: port)) != nil
            try pipeline.addHandler(
              NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : unbracketedHost))
          }
          try pipeline.addHTTPClientHandlers()
          try pipeline.addHandler(ResponseCollector(response, .seconds(seconds), maximumBytes))
        }
      }
    do {
      let connection =
        if let socket { bootstrap.connect(unixDomainSocketPath: socket) } else {
          bootstrap.connect(host: unbracketedHost, port: port)
        }
      let channel = try await connection.get()
      channel.write(HTTPClientRequestPart.head(request), promise: nil)
      if let body {
        channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
      }
      channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    } catch {
      response.fail(Failure(description: "the connection failed: \(error)"))
    }
    return try await response.futureResult.get()
  }

  private func tlsContext() throws -> NIOSSLContext {
    try tls.withLockedValue { stored in
      if let stored { return stored }
      let context = try NIOSSLContext(configuration: .makeClientConfiguration())
      stored = context
      return context
    }
  }

  /// Collects one response and closes the connection.
  private final class ResponseCollector: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private let promise: EventLoopPromise<Response>
    private let time: TimeAmount
    private let maximumBytes: Int
    private var deadline: Scheduled<Void>?
    private var response: Response?

    init(_ promise: EventLoopPromise<Response>, _ time: TimeAmount, _ maximumBytes: Int) {
      self.promise = promise
      self.time = time
      self.maximumBytes = maximumBytes
    }

    func handlerAdded(context: ChannelHandlerContext) {
      let channel = context.channel
      deadline = context.eventLoop.scheduleTask(in: time) { [promise] in
        promise.fail(Failure(description: "the response did not arrive in time"))
        channel.close(promise: nil)
      }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head):
        response = Response(
          status: Int(head.status.code), headers: head.headers.map { ($0.name.lowercased(), $0.value) },
          body: [])
      case .body(let bytes):
        response?.body.append(contentsOf: bytes.readableBytesView)
        guard let count = response?.body.count, count <= maximumBytes else {
          return end(context, Failure(description: "the response is too large"))
        }
      case .end:
        if let response { promise.succeed(response) }
        end(context, nil)
      }
    }

    func channelInactive(context: ChannelHandlerContext) {
      end(context, Failure(description: "the connection closed before the response was complete"))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      end(context, Failure(description: "\(error)"))
    }

    private func end(_ context: ChannelHandlerContext, _ failure: Failure?) {
      deadline?.cancel()
      if let failure { promise.fail(failure) }
      context.close(promise: nil)
    }
  }
}
