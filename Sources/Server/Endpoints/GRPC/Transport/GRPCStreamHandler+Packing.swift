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
  /// Unpacks a message; nil if that goes on elsewhere, or the call has ended since there is no room for it.
  func unpack(_ packed: ByteBuffer) throws(GRPCStatus) -> ByteBuffer? {
    guard let context else { return nil }
    let limit = connection.limits.maximumMessageSize
    guard let packing else { throw GRPCStatus(.internal, "The message is compressed, and the call is not.") }
    do throws(Inflation.Failure) {
      if let message = try Inflation.atOnce(packed, packing, limit: limit) { return message }
    } catch {
      throw GRPCStatus(error, limit)
    }
    packedBytes = packed.readableBytes
    account()
    if case .ended = phase { return nil }
    let job = InflationQueue.Job(packed, packing, limit: limit, on: context.eventLoop) { outcome in
      self.unpacked(outcome.mapError { GRPCStatus($0, limit) })
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
  private func unpacked(_ message: Result<ByteBuffer, GRPCStatus>) {
    unpacking = nil
    packedBytes = 0
    do throws(GRPCStatus) {
      try takeUnpacked(message.get())
      // The only message of a request was kept until that was whole.
      try startWhole()
    } catch {
      return fail(error)
    }
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
