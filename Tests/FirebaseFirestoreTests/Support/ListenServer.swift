// The listen server: a gRPC server whose Listen streams send the messages of a test. Other calls succeed
// without a message.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import SwiftProtobuf

final class ListenServer: Sendable {
  /// A request for a target, and the stream on which it arrived.
  struct Listen: Sendable {
    let target: Int32
    fileprivate let channel: any Channel
  }

  let listens = Recorder<Listen>()
  private let sent = Locked(0)
  private let channel: any Channel

  init() throws {
    let listens = listens
    channel = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.configureHTTP2Pipeline(mode: .server) { stream in
          stream.eventLoop.makeCompletedFuture {
            try stream.pipeline.syncOperations.addHandler(Handler(listens: listens))
          }
        }.map { _ in }
      }
      .bind(host: "127.0.0.1", port: 0).wait()
  }

  var port: Int { channel.localAddress?.port ?? 0 }
  func stop() { channel.close(promise: nil) }

  /// The number of bytes of messages that flow control has allowed to be sent.
  var sentBytes: Int { sent.change { $0 } }

  /// Sends messages as fast as flow control allows.
  func send(_ messages: [Google_Firestore_V1_ListenResponse], on listen: Listen) throws {
    for message in messages {
      let bytes: [UInt8] = try message.serializedBytes()
      var buffer = ByteBuffer()
      buffer.writeGRPCMessage(bytes: bytes)
      let (size, sent) = (buffer.readableBytes, sent)
      listen.channel.write(HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(buffer)))).whenSuccess {
        sent.change { $0 += size }
      }
    }
    listen.channel.flush()
  }

  /// Ends a stream with a status.
  func end(_ listen: Listen, status: Int) {
    let trailers: HPACKHeaders = ["grpc-status": "\(status)"]
    listen.channel.writeAndFlush(
      HTTP2Frame.FramePayload.headers(.init(headers: trailers, endStream: true)), promise: nil)
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    private let listens: Recorder<Listen>
    private var parser = GRPCMessageParser()

    private var isListen = false

    init(listens: Recorder<Listen>) { self.listens = listens }

    private func respond(_ context: ChannelHandlerContext) {
      var headers: HPACKHeaders = [":status": "200", "content-type": "application/grpc"]
      if !isListen { headers.add(name: "grpc-status", value: "0") }
      context.writeAndFlush(
        wrapOutboundOut(.headers(.init(headers: headers, endStream: !isListen))), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .headers(let head):
        isListen = head.headers.first(name: ":path")?.hasSuffix("/Listen") == true
        if isListen { respond(context) }
      case .data(let body):
        if !isListen, body.endStream { respond(context) }
        guard isListen, case .byteBuffer(let buffer) = body.data else { return }
        parser.append(buffer)
        while let message = try? parser.next(),
          let request = try? Google_Firestore_V1_ListenRequest(
            serializedBytes: Array(message.readableBytesView))
        {
          if case .addTarget(let target) = request.targetChange {
            listens.add(Listen(target: target.targetID, channel: context.channel))
          }
        }
      default: break
      }
    }
  }
}
