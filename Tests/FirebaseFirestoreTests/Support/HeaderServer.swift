// The header server: a gRPC server that records the headers of each call, and ends the call with a status
// that a closure chooses.

import Foundation
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix

/// A call that the server received.
struct ReceivedCall: Sendable {
  let method: String
  let authorization: String?
  let appCheck: String?
}

final class HeaderServer: Sendable {
  let calls = Recorder<ReceivedCall>()
  private let channel: any Channel

  /// - Parameter status: returns the gRPC status with which a call ends immediately; nil leaves the call
  ///   open.
  init(status: @escaping @Sendable (ReceivedCall) -> Int?) throws {
    let calls = calls
    channel = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.configureHTTP2Pipeline(mode: .server) { stream in
          stream.eventLoop.makeCompletedFuture {
            try stream.pipeline.syncOperations.addHandler(Responder(calls: calls, status: status))
          }
        }.map { _ in }
      }
      .bind(host: "127.0.0.1", port: 0).wait()
  }

  var port: Int { channel.localAddress?.port ?? 0 }
  func stop() { channel.close(promise: nil) }

  private final class Responder: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    private let calls: Recorder<ReceivedCall>
    private let status: (ReceivedCall) -> Int?

    init(calls: Recorder<ReceivedCall>, status: @escaping (ReceivedCall) -> Int?) {
      self.calls = calls
      self.status = status
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .headers(let head) = unwrapInboundIn(data) else { return }
      let call = ReceivedCall(
        method: String(head.headers.first(name: ":path")?.split(separator: "/").last ?? ""),
        authorization: head.headers.first(name: "authorization"),
        appCheck: head.headers.first(name: "x-firebase-appcheck"))
      calls.add(call)
      var headers: HPACKHeaders = [":status": "200", "content-type": "application/grpc"]
      let status = status(call)
      if let status { headers.add(name: "grpc-status", value: "\(status)") }
      context.writeAndFlush(
        wrapOutboundOut(.headers(.init(headers: headers, endStream: status != nil))), promise: nil)
    }
  }
}
