// Messages that come compressed: unpacked at once where that is little work, else on a thread that may be kept busy,
// while the call's further messages wait.

import GRPCFraming
import NIOCore
import NIOPosix

extension GRPCEncodings {
  /// What this server unpacks.
  static let accepted = GRPCEncodings(["gzip", "deflate"])
}

extension GRPCStreamHandler {
  /// Unpacks a message; nil if that goes on elsewhere.
  func unpack(_ packed: ByteBuffer, _ context: ChannelHandlerContext) throws(GRPCStatus) -> ByteBuffer? {
    let limit = connection.limits.maximumMessageSize
    guard let packing else { throw GRPCStatus(.internal, "The message is compressed, and the call is not.") }
    do throws(Inflation.Failure) {
      if let message = try Inflation.atOnce(packed, packing, limit: limit) { return message }
    } catch {
      throw GRPCStatus(error, limit)
    }
    packedBytes = packed.readableBytes
    let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
    let unpacking = NIOThreadPool.singleton.runIfActive(eventLoop: context.eventLoop) {
      () -> Result<ByteBuffer, GRPCStatus> in
      do throws(Inflation.Failure) {
        return .success(try Inflation.unpack(packed, packing, limit: limit))
      } catch {
        return .failure(GRPCStatus(error, limit))
      }
    }
    unpacking.whenComplete { outcome in
      switch outcome {
      case .success(let result): handler.value.unpacked(result)
      case .failure:
        handler.value.unpacked(.failure(GRPCStatus(.unavailable, "The server is shutting down.")))
      }
    }
    return nil
  }

  /// A message that is far larger than what came for it is accounted for before anything is done with it.
  func takeUnpacked(_ message: ByteBuffer) throws(GRPCStatus) {
    try take(message)
    account()
  }

  /// Goes on with a message that was unpacked elsewhere.
  private func unpacked(_ message: Result<ByteBuffer, GRPCStatus>) {
    packedBytes = nil
    if case .ended = phase { return }
    do throws(GRPCStatus) { try takeUnpacked(message.get()) } catch { return fail(error) }
    deliver()
  }
}

extension GRPCStatus {
  /// The status of a message that was not unpacked.
  fileprivate init(_ failure: Inflation.Failure, _ limit: Int) {
    switch failure {
    case .tooLarge:
      self.init(.resourceExhausted, "A message exceeds the limit of \(limit) bytes once it is unpacked.")
    case .damaged(let reason): self.init(.internal, "The compressed message cannot be unpacked: \(reason).")
    }
  }
}
