// Sends the HTTP request that upgrades a connection to a WebSocket, and reports a response that rejects it.

import FirebaseCore
import NIOCore
import NIOHTTP1

/// The request that upgrades a connection.
struct UpgradeRequest: Sendable {
  let uri: String
  let authority: String
  /// The App Check token; nil without App Check.
  let appCheck: String?
}

/// Requests the upgrade as soon as the connection is open.
final class UpgradeRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private let request: UpgradeRequest
  private let rejected: @Sendable (String) -> Void

  init(_ request: UpgradeRequest, rejected: @escaping @Sendable (String) -> Void) {
    self.request = request
    self.rejected = rejected
  }

  func channelActive(context: ChannelHandlerContext) {
    var headers = HTTPHeaders()
    headers.add(name: "Host", value: request.authority)
    headers.add(name: "User-Agent", value: "Firebase/5/\(FirebaseVersion())/swift/hearth")
    if let token = request.appCheck { headers.add(name: "X-Firebase-AppCheck", value: token) }
    let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: request.uri, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .head(let head) = unwrapInboundIn(data) {
      rejected("The server responded with \(head.status.code) instead of opening a WebSocket")
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    rejected("\(error)")
  }
}
