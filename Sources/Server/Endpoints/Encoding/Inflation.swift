// Unpacks what peers send compressed: gzip (RFC 1952), and what HTTP and gRPC call deflate, which is zlib's form (RFC 1950).
//
// Invariants
//   1. No more is unpacked than the limit and a byte, whatever the bytes claim: a kilobyte of them may stand for a megabyte.
//   2. What ends early, does not match its checksum, or has anything behind its end is refused whole. One gzip may
//      follow another, as the format has it.
//   3. On an event loop only what is little work is unpacked: a message of bytes that were chosen for it costs a second.

import CZlib
import NIOCore

/// How bytes were compressed.
enum CompressionAlgorithm: Equatable {
  case gzip
  case deflate

  /// The packing that a header names; nil for any other.
  init?(_ name: String) {
    switch name {
    case "gzip", "x-gzip": self = .gzip
    case "deflate": self = .deflate
    default: return nil
    }
  }

  /// What zlib calls the largest window, and 16 more for the header and checksum of gzip.
  fileprivate var windowBits: Int32 { self == .gzip ? 15 + 16 : 15 }
}

enum Decompression {
  /// Why bytes were not unpacked.
  enum Failure: Error, Equatable {
    /// They stand for more than the limit.
    case tooLarge
    /// They are not what they are said to be; how, as the end of a sentence.
    case damaged(String)
  }

  /// What may be unpacked on an event loop: from so many bytes, and to so many.
  private static let fewBytes = 4 << 10
  private static let fewUnpacked = 64 << 10

  /// By how much room grows at a time, at first.
  private static let piece = 4 << 10

  /// Unpacks bytes where that is little work; nil where it may not be.
  static func atOnce(
    _ packed: ByteBuffer, _ packing: CompressionAlgorithm, limit: Int
  ) throws(Failure) -> ByteBuffer? {
    guard packed.readableBytes <= fewBytes else { return nil }
    do throws(Failure) {
      return try unpack(packed, packing, limit: min(limit, fewUnpacked))
    } catch {
      if error == .tooLarge, limit > fewUnpacked { return nil }
      throw error
    }
  }

  /// Unpacks bytes into at most `limit`. Takes its time: up to a second for a few megabytes.
  static func unpack(
    _ packed: ByteBuffer, _ packing: CompressionAlgorithm, limit: Int
  ) throws(Failure) -> ByteBuffer {
    // Not a variable: the library remembers where its state lies.
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    defer { stream.deallocate() }
    let size = Int32(MemoryLayout<z_stream>.size)
    guard inflateInit2_(stream, packing.windowBits, ZLIB_VERSION, size) == Z_OK else {
      throw .damaged("there is no memory to unpack it")
    }
    defer { inflateEnd(stream) }
    var unpacked = ByteBuffer()
    let failure = packed.withUnsafeReadableBytes { raw in
      raw.withMemoryRebound(to: UInt8.self) { bytes in
        stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
        stream.pointee.avail_in = UInt32(clamping: bytes.count)
        return fill(&unpacked, from: stream, packing, limit)
      }
    }
    if let failure { throw failure }
    // It is counted as its length: a small one does not keep a whole piece.
    let isLoose = unpacked.storageCapacity > 2 * unpacked.readableBytes
    return isLoose ? ByteBuffer(bytes: unpacked.readableBytesView) : unpacked
  }

  private static func fill(
    _ unpacked: inout ByteBuffer, from stream: UnsafeMutablePointer<z_stream>, _ packing: CompressionAlgorithm,
    _ limit: Int
  ) -> Failure? {
    while true {
      var status = Z_OK
      // A byte beyond the limit shows that there is more.
      let most = limit + 1 - unpacked.readableBytes
      let room = min(most, max(piece, unpacked.readableBytes))
      unpacked.writeWithUnsafeMutableBytes(minimumWritableBytes: room) { raw in
        raw.withMemoryRebound(to: UInt8.self) { space in
          let count = min(most, space.count)
          stream.pointee.next_out = space.baseAddress
          stream.pointee.avail_out = UInt32(clamping: count)
          status = inflate(stream, Z_NO_FLUSH)
          return count - Int(stream.pointee.avail_out)
        }
      }
      guard unpacked.readableBytes <= limit else { return .tooLarge }
      switch status {
      case Z_STREAM_END:
        if stream.pointee.avail_in == 0 { return nil }
        guard packing == .gzip, inflateReset(stream) == Z_OK else {
          return .damaged("bytes follow its end")
        }
      case Z_OK where stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0: continue
      case Z_OK, Z_BUF_ERROR: return .damaged("it ends too early")
      default:
        return .damaged(stream.pointee.msg.map { String(cString: $0) } ?? "it cannot be unpacked")
      }
    }
  }
}
