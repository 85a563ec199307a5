// Sends the HTTP request that upgrades a connection to a WebSocket, and reports a response that rejects it.

import FirebaseCore
import NIOCore
import NIOHTTP1

/// Asks for the upgrade as soon as the connection stands.
final class UpgradeRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private let uri: String
  private let authority: String
  private let refused: @Sendable (String) -> Void

  init(uri: String, authority: String, refused: @escaping @Sendable (String) -> Void) {
    self.uri = uri
    self.authority = authority
    self.refused = refused
  }

  func channelActive(context: ChannelHandlerContext) {
    var headers = HTTPHeaders()
    headers.add(name: "Host", value: authority)
    headers.add(name: "User-Agent", value: "Firebase/5/\(FirebaseVersion())/swift/hearth")
    let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: uri, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .head(let head) = unwrapInboundIn(data) {
      refused("The server answered \(head.status.code) instead of opening a WebSocket")
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    refused("\(error)")
  }
}
