// Tests of decompression: valid and corrupt input, several gzip members, and input that expands a thousandfold.

import NIOCore
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Decompression")
struct DecompressionTests {
  private static let limit = 1 << 20
  private static let plain = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7 &* 31) }

  private func decompress(
    _ input: [UInt8], _ algorithm: CompressionAlgorithm = .gzip, limit: Int = limit
  ) throws -> [UInt8] {
    Array(try Decompression.decompress(ByteBuffer(bytes: input), algorithm, limit: limit).readableBytesView)
  }

  private func failure(
    _ input: [UInt8], _ algorithm: CompressionAlgorithm = .gzip, limit: Int = limit
  ) -> Decompression.Failure? {
    do throws(Decompression.Failure) {
      _ = try Decompression.decompress(ByteBuffer(bytes: input), algorithm, limit: limit)
      return nil
    } catch {
      return error
    }
  }

  private func isCorrupt(_ failure: Decompression.Failure?) -> Bool {
    if case .corrupt = failure { true } else { false }
  }

  @Test(
    "Compressed bytes decompress to the original bytes", arguments: [CompressionAlgorithm.gzip, .deflate])
  func roundTrip(algorithm: CompressionAlgorithm) throws {
    for bytes in [[], [7], Self.plain] {
      #expect(try decompress(TestCompressor.compress(bytes, algorithm), algorithm) == bytes)
    }
  }

  @Test("Input may have several gzip members, but only one zlib stream")
  func members() throws {
    let compressed =
      TestCompressor.compress([1, 2]) + TestCompressor.compress([]) + TestCompressor.compress(Self.plain)
    #expect(try decompress(compressed) == [1, 2] + Self.plain)
    #expect(
      isCorrupt(
        failure(TestCompressor.compress([1], .deflate) + TestCompressor.compress([2], .deflate), .deflate)))
  }

  @Test(
    "Output of exactly the limit is accepted, one byte more is rejected; gzip members share the limit",
    arguments: [CompressionAlgorithm.gzip, .deflate])
  func limits(algorithm: CompressionAlgorithm) throws {
    let compressed = TestCompressor.compress(Self.plain, algorithm)
    #expect(try decompress(compressed, algorithm, limit: Self.plain.count) == Self.plain)
    #expect(failure(compressed, algorithm, limit: Self.plain.count - 1) == .tooLarge)
    #expect(failure(TestCompressor.bomb(64 << 20, algorithm), algorithm) == .tooLarge)
    if algorithm == .gzip {
      #expect(failure(compressed + compressed, limit: 2 * Self.plain.count - 1) == .tooLarge)
    }
  }

  @Test(
    "Truncated input and trailing bytes are errors; a flipped bit is an error or leaves the output unchanged")
  func corruption() {
    for algorithm in [CompressionAlgorithm.gzip, .deflate] {
      let text = Array("a text of some length, of some length".utf8)
      let compressed = TestCompressor.compress(text, algorithm)
      for count in compressed.indices { #expect(isCorrupt(failure(Array(compressed[..<count]), algorithm))) }
      for byte in compressed.indices {
        for bit in 0..<8 {
          var broken = compressed
          broken[byte] ^= 1 << bit
          // Some bits have no effect: parts of the gzip header, and the padding before the checksum.
          if let output = try? decompress(broken, algorithm) {
            #expect(output == text, "byte \(byte), bit \(bit)")
          }
        }
      }
      for trailing in [[0], [0x1f], [0x1f, 0x8b], [UInt8](repeating: 0, count: 40)] as [[UInt8]] {
        #expect(isCorrupt(failure(compressed + trailing, algorithm)), "\(trailing)")
      }
    }
    #expect(isCorrupt(failure(TestCompressor.compress([1], .deflate))))
    #expect(isCorrupt(failure(TestCompressor.compress([1]), .deflate)))
  }

  @Test(
    "The buffer of the decompressed output is at most twice as large as the output",
    arguments: [0, 1, 3, 100, 5_000, 70_000])
  func memory(count: Int) throws {
    let compressed = ByteBuffer(bytes: TestCompressor.compress([UInt8](repeating: 1, count: count)))
    let output = try Decompression.decompress(compressed, .gzip, limit: Self.limit)
    #expect(output.readableBytes == count)
    #expect(output.storageCapacity <= 2 * count)
  }

  @Test("Only small input with small output is decompressed on the event loop")
  func small() throws {
    let small = ByteBuffer(bytes: TestCompressor.compress([1, 2, 3]))
    #expect(
      try Decompression.decompressIfSmall(small, .gzip, limit: Self.limit) == ByteBuffer(bytes: [1, 2, 3]))
    #expect(
      try Decompression.decompressIfSmall(
        ByteBuffer(bytes: TestCompressor.bomb(1 << 20)), .gzip, limit: Self.limit)
        == nil)
    let noise = (0..<10_000).map { _ in UInt8.random(in: 0...255) }
    #expect(
      try Decompression.decompressIfSmall(
        ByteBuffer(bytes: TestCompressor.compress(noise)), .gzip, limit: Self.limit)
        == nil)
    #expect(throws: Decompression.Failure.tooLarge) {
      try Decompression.decompressIfSmall(small, .gzip, limit: 2)
    }
  }
}
