// Decompresses request messages: small ones immediately, large ones on another thread while later messages wait.
//
// The only message of a unary request is decompressed when the request is complete. Until then a client that sends few bytes
// makes the server hold few bytes.

import GRPCFraming
import NIOCore
import Ports

extension GRPCEncodings {
  /// The encodings that the server decompresses.
  static let accepted = GRPCEncodings(["gzip", "deflate"])
}

extension GRPCStreamHandler {
  /// Decompresses a message.
  ///
  /// Returns nil if another thread decompresses it, or if the call has ended for lack of memory. Also returns nil if a duplex
  /// call was notified that the message is too large.
  func decompress(_ compressed: ByteBuffer) throws(GRPCStatus) -> ByteBuffer? {
    guard let context else { return nil }
    let limit = connection.limits.maximumMessageSize
    guard let compression else {
      throw GRPCStatus(.internal, "The message is compressed, but the call's headers name no encoding.")
    }
    do throws(Decompression.Failure) {
      if let message = try Decompression.decompressIfSmall(compressed, compression, limit: limit) {
        return message
      }
    } catch {
      try reject(error)
      return nil
    }
    compressedBytes = compressed.readableBytes
    updateHeldBytes()
    if case .ended = phase { return nil }
    let job = DecompressionQueue.Job(compressed, compression, limit: limit, on: context.eventLoop) {
      outcome in
      self.finishDecompression(outcome)
    }
    decompression = job
    connection.decompressions.add(job)
    return nil
  }

  /// Accepts a decompressed message. It may be far larger than the received bytes, so it is counted before it is used.
  func acceptDecompressed(_ message: ByteBuffer) throws(GRPCStatus) {
    try accept(message)
    updateHeldBytes()
  }

  /// Continues with a message that another thread decompressed.
  private func finishDecompression(_ outcome: Result<ByteBuffer, Decompression.Failure>) {
    decompression = nil
    compressedBytes = 0
    do throws(GRPCStatus) {
      switch outcome {
      case .success(let message):
        try acceptDecompressed(message)
        // A unary request was complete before its message was decompressed.
        try startIfCollected()
      case .failure(let failure): try reject(failure)
      }
    } catch {
      return fail(error)
    }
    deliver()
  }

  private func reject(_ failure: Decompression.Failure) throws(GRPCStatus) {
    switch failure {
    case .tooLarge: try rejectOversized(nil)
    case .corrupt(let reason):
      throw GRPCStatus(.internal, "The compressed message cannot be decompressed: \(reason).")
    }
  }
}
