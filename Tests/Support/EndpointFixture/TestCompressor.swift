// The test compressor compresses messages. It also makes decompression bombs: small inputs that decompress to
// very many bytes.

import CZlib
import Ports

enum TestCompressor {
  static func compress(_ bytes: [UInt8], _ algorithm: CompressionAlgorithm = .gzip) -> [UInt8] {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    defer { stream.deallocate() }
    let bits: Int32 = algorithm == .gzip ? 31 : 15
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

  /// Compresses `bytes` zeros: the result has about one kilobyte for each megabyte.
  static func bomb(_ bytes: Int, _ algorithm: CompressionAlgorithm = .gzip) -> [UInt8] {
    compress([UInt8](repeating: 0, count: bytes), algorithm)
  }
}
