// Removes response headers that cannot be sent. All responses except gRPC responses pass this filter.
//
// Some header values come from outside, such as an origin or a file name. A codec that receives an invalid header fails the
// entire response or connection.

import NIOCore
import NIOHTTP1

/// Removes the headers that HTTP/1.1 and HTTP/2 do not allow.
final class ResponseHeaderFilter: ChannelOutboundHandler, RemovableChannelHandler {
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(var head) where !head.headers.allSatisfy(Self.isSendable):
      head.headers = HTTPHeaders(head.headers.filter(Self.isSendable))
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    case .end(let trailers?) where !trailers.allSatisfy(Self.isSendable):
      let trailers = HTTPHeaders(trailers.filter(Self.isSendable))
      context.write(wrapOutboundOut(.end(trailers)), promise: promise)
    default: context.write(data, promise: promise)
    }
  }

  /// Whether the name is a token, and the value has no white space at its ends and no control characters except tabs.
  static func isSendable(_ name: String, _ value: String) -> Bool {
    guard !name.isEmpty, name.utf8.allSatisfy(isTokenByte) else { return false }
    guard value.utf8.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else { return false }
    let ends = [value.utf8.first, value.utf8.last]
    return !ends.contains(0x20) && !ends.contains(0x09)
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x5E...0x7A, 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x7C, 0x7E: true
    default: false
    }
  }
}
