// Decompresses the bodies and messages of clients: gzip (RFC 1952), and zlib's format (RFC 1950), which HTTP and gRPC call
// deflate.
//
// Invariants
//   1. Decompression stops at most one byte above the output limit, since a kilobyte of input can expand to a megabyte.
//   2. Input that is truncated, does not match its checksum, or has trailing bytes is an error. Gzip input may consist
//      of several members, as RFC 1952 allows.
//   3. An event loop decompresses only small inputs: a maliciously constructed large one takes a second.

import CZlib
package import NIOCore

/// A compression format.
package enum CompressionAlgorithm: Equatable {
  case gzip
  case deflate

  /// Parses the name in a Content-Encoding or grpc-encoding header; nil for an unsupported format.
  package init?(_ name: String) {
    switch name {
    case "gzip", "x-gzip": self = .gzip
    case "deflate": self = .deflate
    default: return nil
    }
  }

  /// zlib's `windowBits`: 15 selects the largest window, and adding 16 selects gzip's header and checksum.
  fileprivate var windowBits: Int32 { self == .gzip ? 15 + 16 : 15 }
}

/// Decompresses gzip and zlib input with an output limit.
package enum Decompression {
  /// Why input was not decompressed.
  package enum Failure: Error, Equatable {
    /// The output exceeds its limit.
    case tooLarge
    /// The input is corrupt. The associated value is the reason, a clause for the error text.
    case corrupt(String)
  }

  /// Maximum bytes of input and output that an event loop decompresses.
  private static let smallInputBytes = 4 << 10
  private static let smallOutputBytes = 64 << 10

  /// Minimum bytes by which the output buffer grows. A larger buffer doubles.
  private static let firstGrowthBytes = 4 << 10

  /// Decompresses a small input. Returns nil if the input or the output may be large.
  package static func decompressIfSmall(
    _ input: ByteBuffer, _ algorithm: CompressionAlgorithm, limit: Int
  ) throws(Failure) -> ByteBuffer? {
    guard input.readableBytes <= smallInputBytes else { return nil }
    do throws(Failure) {
      return try decompress(input, algorithm, limit: min(limit, smallOutputBytes))
    } catch {
      if error == .tooLarge, limit > smallOutputBytes { return nil }
      throw error
    }
  }

  /// Decompresses an input of any size. Takes up to a second for some megabytes.
  /// - Parameter limit: the maximum output, in bytes.
  static func decompress(
    _ input: ByteBuffer, _ algorithm: CompressionAlgorithm, limit: Int
  ) throws(Failure) -> ByteBuffer {
    // SAFETY: zlib keeps a pointer to the stream, so the stream is allocated and does not move.
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    defer { stream.deallocate() }
    let size = Int32(MemoryLayout<z_stream>.size)
    guard inflateInit2_(stream, algorithm.windowBits, ZLIB_VERSION, size) == Z_OK else {
      throw .corrupt("there is no memory to unpack it")
    }
    defer { inflateEnd(stream) }
    var output = ByteBuffer()
    let failure = input.withUnsafeReadableBytes { raw in
      raw.withMemoryRebound(to: UInt8.self) { bytes in
        stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
        stream.pointee.avail_in = UInt32(clamping: bytes.count)
        return fill(&output, from: stream, algorithm, limit)
      }
    }
    if let failure { throw failure }
    precondition(output.readableBytes <= limit, "invariant: decompressed bytes stay within their limit")
    // The callers count only the output's length in the memory budget, so a small output must not retain a large buffer.
    let isOversized = output.storageCapacity > 2 * output.readableBytes
    return isOversized ? ByteBuffer(bytes: output.readableBytesView) : output
  }

  private static func fill(
    _ output: inout ByteBuffer, from stream: UnsafeMutablePointer<z_stream>,
    _ algorithm: CompressionAlgorithm, _ limit: Int
  ) -> Failure? {
    while true {
      var status = Z_OK
      // The buffer has room for one byte above the limit. If that byte is written, the output is too large.
      let maximum = limit + 1 - output.readableBytes
      let growth = min(maximum, max(firstGrowthBytes, output.readableBytes))
      output.writeWithUnsafeMutableBytes(minimumWritableBytes: growth) { raw in
        raw.withMemoryRebound(to: UInt8.self) { space in
          let count = min(maximum, space.count)
          stream.pointee.next_out = space.baseAddress
          stream.pointee.avail_out = UInt32(clamping: count)
          status = inflate(stream, Z_NO_FLUSH)
          return count - Int(stream.pointee.avail_out)
        }
      }
      guard output.readableBytes <= limit else { return .tooLarge }
      switch status {
      case Z_STREAM_END:
        if stream.pointee.avail_in == 0 { return nil }
        guard algorithm == .gzip, inflateReset(stream) == Z_OK else {
          return .corrupt("bytes follow its end")
        }
      case Z_OK where stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0: continue
      case Z_OK, Z_BUF_ERROR: return .corrupt("it ends too early")
      default:
        return .corrupt(stream.pointee.msg.map { String(cString: $0) } ?? "it cannot be unpacked")
      }
    }
  }
}
