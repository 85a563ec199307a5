// Compresses as clients do, and as no honest one does.

import CZlib

@testable import Endpoints

enum Packer {
  static func pack(_ bytes: [UInt8], _ packing: CompressionAlgorithm = .gzip) -> [UInt8] {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    defer { stream.deallocate() }
    let bits: Int32 = packing == .gzip ? 31 : 15
    guard
      deflateInit2_(
        stream, 9, Z_DEFLATED, bits, 9, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return [] }
    defer { deflateEnd(stream) }
    let bound = Int(deflateBound(stream, UInt(bytes.count)))
    var bytes = bytes
    return bytes.withUnsafeMutableBufferPointer { input in
      [UInt8](unsafeUninitializedCapacity: bound) { output, count in
        stream.pointee.next_in = input.baseAddress
        stream.pointee.avail_in = UInt32(input.count)
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = UInt32(output.count)
        _ = deflate(stream, Z_FINISH)
        count = bound - Int(stream.pointee.avail_out)
      }
    }
  }

  /// What a kilobyte for each megabyte stands for.
  static func bomb(_ bytes: Int, _ packing: CompressionAlgorithm = .gzip) -> [UInt8] {
    pack([UInt8](repeating: 0, count: bytes), packing)
  }
}
