// Compressed bytes. What they are unpacked to stays within its limit, is the same whatever larger limit there is, and is
// what an event loop makes of them where that takes them.

import NIOCore

@testable import Endpoints

func fuzzInflation(_ input: UnsafeRawBufferPointer) throws {
  let packed = ByteBuffer(bytes: input)
  for packing in [Packing.gzip, .deflate] {
    // Beyond what is unpacked on an event loop.
    let most = 1 << 18
    let whole = unpack { () throws(Inflation.Failure) in try Inflation.unpack(packed, packing, limit: most) }
    let atOnce = unpack { () throws(Inflation.Failure) in try Inflation.atOnce(packed, packing, limit: most) }
    if atOnce != .success(nil) {
      try require(atOnce == whole, "an event loop unpacks \(atOnce), not \(whole)")
    }
    guard case .success(let unpacked?) = whole else { continue }
    let count = unpacked.readableBytes
    try require(count <= most, "\(count) bytes are more than the limit")
    try require(
      unpacked.storageCapacity <= max(64, 4 * count), "\(count) bytes take \(unpacked.storageCapacity)")
    try require(
      unpack { () throws(Inflation.Failure) in try Inflation.unpack(packed, packing, limit: count) } == whole,
      "what fits exactly is unpacked to something else")
    guard count > 0 else { continue }
    let short = unpack { () throws(Inflation.Failure) in
      try Inflation.unpack(packed, packing, limit: count - 1)
    }
    try require(short == .failure(.tooLarge), "a limit of a byte less gives \(short)")
  }
}

private func unpack(
  _ body: () throws(Inflation.Failure) -> ByteBuffer?
) -> Result<ByteBuffer?, Inflation.Failure> {
  do throws(Inflation.Failure) { return .success(try body()) } catch { return .failure(error) }
}
