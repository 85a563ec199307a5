// Messages that come compressed: unpacked at once where that is little work, else on a thread that may be kept busy,
// while the call's further messages wait. The only message of a request is unpacked once the request is whole: until then
// a peer that sends little makes the server hold little.

import GRPCFraming
import NIOCore

extension GRPCEncodings {
  /// What this server unpacks.
  static let accepted = GRPCEncodings(["gzip", "deflate"])
}

extension GRPCStreamHandler {
  /// Unpacks a message; nil if that goes on elsewhere, the call has ended since there is no room for it, or a conversation
  /// was told that it is too large.
  func unpack(_ packed: ByteBuffer) throws(GRPCStatus) -> ByteBuffer? {
    guard let context else { return nil }
    let limit = connection.limits.maximumMessageSize
    guard let packing else { throw GRPCStatus(.internal, "The message is compressed, and the call is not.") }
    do throws(Decompression.Failure) {
      if let message = try Decompression.atOnce(packed, packing, limit: limit) { return message }
    } catch {
      try refuse(error)
      return nil
    }
    packedBytes = packed.readableBytes
    account()
    if case .ended = phase { return nil }
    let job = DecompressionQueue.Job(packed, packing, limit: limit, on: context.eventLoop) { outcome in
      self.unpacked(outcome)
    }
    unpacking = job
    connection.inflations.add(job)
    return nil
  }

  /// A message that is far larger than what came for it is accounted for before anything is done with it.
  func takeUnpacked(_ message: ByteBuffer) throws(GRPCStatus) {
    try take(message)
    account()
  }

  /// Goes on with a message that was unpacked elsewhere.
  private func unpacked(_ outcome: Result<ByteBuffer, Decompression.Failure>) {
    unpacking = nil
    packedBytes = 0
    do throws(GRPCStatus) {
      switch outcome {
      case .success(let message):
        try takeUnpacked(message)
        // The only message of a request was kept until that was whole.
        try startWhole()
      case .failure(let failure): try refuse(failure)
      }
    } catch {
      return fail(error)
    }
    deliver()
  }

  /// Refuses a message that was not unpacked.
  private func refuse(_ failure: Decompression.Failure) throws(GRPCStatus) {
    switch failure {
    case .tooLarge: try refuse(nil)
    case .damaged(let reason):
      throw GRPCStatus(.internal, "The compressed message cannot be unpacked: \(reason).")
    }
  }
}
