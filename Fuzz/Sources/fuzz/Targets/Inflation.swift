// Decompresses the input. The output stays within its limit, does not depend on a larger limit, and is the same on an event
// loop.

import NIOCore

@testable import Endpoints

func fuzzInflation(_ input: UnsafeRawBufferPointer) throws {
  let packed = ByteBuffer(bytes: input)
  for packing in [CompressionAlgorithm.gzip, .deflate] {
    // More than an event loop decompresses.
    let limit = 1 << 18
    let whole = unpack { () throws(Decompression.Failure) in
      try Decompression.decompress(packed, packing, limit: limit)
    }
    let small = unpack { () throws(Decompression.Failure) in
      try Decompression.decompressIfSmall(packed, packing, limit: limit)
    }
    if small != .success(nil) {
      try require(small == whole, "an event loop decompresses to \(small), not \(whole)")
    }
    guard case .success(let unpacked?) = whole else { continue }
    let count = unpacked.readableBytes
    try require(count <= limit, "\(count) bytes are more than the limit")
    try require(
      unpacked.storageCapacity <= max(64, 4 * count), "\(count) bytes take \(unpacked.storageCapacity)")
    try require(
      unpack { () throws(Decompression.Failure) in try Decompression.decompress(packed, packing, limit: count)
      } == whole,
      "a limit of the exact size changes the output")
    guard count > 0 else { continue }
    let short = unpack { () throws(Decompression.Failure) in
      try Decompression.decompress(packed, packing, limit: count - 1)
    }
    try require(short == .failure(.tooLarge), "a limit of a byte less gives \(short)")
  }
}

private func unpack(
  _ body: () throws(Decompression.Failure) -> ByteBuffer?
) -> Result<ByteBuffer?, Decompression.Failure> {
  do throws(Decompression.Failure) { return .success(try body()) } catch { return .failure(error) }
}
