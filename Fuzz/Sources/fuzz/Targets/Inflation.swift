// Fuzz target: compressed bytes. Decompressed output stays within its limit, does not depend on a larger limit,
// and equals the output of the event loop's decompression if that accepts the input.

import NIOCore

@testable import Endpoints

func fuzzInflation(_ input: UnsafeRawBufferPointer) throws {
  let packed = ByteBuffer(bytes: input)
  for packing in [CompressionAlgorithm.gzip, .deflate] {
    // More than is decompressed on an event loop.
    let most = 1 << 18
    let whole = unpack { () throws(Decompression.Failure) in
      try Decompression.unpack(packed, packing, limit: most)
    }
    let atOnce = unpack { () throws(Decompression.Failure) in
      try Decompression.atOnce(packed, packing, limit: most)
    }
    if atOnce != .success(nil) {
      try require(atOnce == whole, "an event loop unpacks \(atOnce), not \(whole)")
    }
    guard case .success(let unpacked?) = whole else { continue }
    let count = unpacked.readableBytes
    try require(count <= most, "\(count) bytes are more than the limit")
    try require(
      unpacked.storageCapacity <= max(64, 4 * count), "\(count) bytes take \(unpacked.storageCapacity)")
    try require(
      unpack { () throws(Decompression.Failure) in try Decompression.unpack(packed, packing, limit: count) }
        == whole,
      "what fits exactly is unpacked to something else")
    guard count > 0 else { continue }
    let short = unpack { () throws(Decompression.Failure) in
      try Decompression.unpack(packed, packing, limit: count - 1)
    }
    try require(short == .failure(.tooLarge), "a limit of a byte less gives \(short)")
  }
}

private func unpack(
  _ body: () throws(Decompression.Failure) -> ByteBuffer?
) -> Result<ByteBuffer?, Decompression.Failure> {
  do throws(Decompression.Failure) { return .success(try body()) } catch { return .failure(error) }
}
