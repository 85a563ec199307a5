// Fuzz target: compressed bytes. Decompressed output stays within its limit, does not depend on a larger limit,
// and equals the output of the event loop's decompression if that accepts the input.

import NIOCore

@testable import Ports

func fuzzInflation(_ input: UnsafeRawBufferPointer) throws {
  let compressed = ByteBuffer(bytes: input)
  for algorithm in [CompressionAlgorithm.gzip, .deflate] {
    // More bytes than an event loop decompresses.
    let maximumBytes = 1 << 18
    let complete = outcome { () throws(Decompression.Failure) in
      try Decompression.decompress(compressed, algorithm, limit: maximumBytes)
    }
    let immediate = outcome { () throws(Decompression.Failure) in
      try Decompression.decompressIfSmall(compressed, algorithm, limit: maximumBytes)
    }
    if immediate != .success(nil) {
      try require(immediate == complete, "an event loop decompresses to \(immediate), not \(complete)")
    }
    guard case .success(let decompressed?) = complete else { continue }
    let count = decompressed.readableBytes
    try require(count <= maximumBytes, "\(count) bytes are more than the limit")
    try require(
      decompressed.storageCapacity <= max(64, 4 * count),
      "\(count) bytes take \(decompressed.storageCapacity)")
    try require(
      outcome { () throws(Decompression.Failure) in
        try Decompression.decompress(compressed, algorithm, limit: count)
      }
        == complete,
      "with an exact limit the output differs")
    guard count > 0 else { continue }
    let short = outcome { () throws(Decompression.Failure) in
      try Decompression.decompress(compressed, algorithm, limit: count - 1)
    }
    try require(short == .failure(.tooLarge), "a limit of a byte less gives \(short)")
  }
}

private func outcome(
  _ body: () throws(Decompression.Failure) -> ByteBuffer?
) -> Result<ByteBuffer?, Decompression.Failure> {
  do throws(Decompression.Failure) { return .success(try body()) } catch { return .failure(error) }
}
