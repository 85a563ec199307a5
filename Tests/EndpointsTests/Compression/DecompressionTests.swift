// Decompression of valid input, corrupt input, several gzip members, and input that expands a thousandfold.

import NIOCore
import Testing

@testable import Endpoints

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

  @Test("compressed bytes decompress to themselves", arguments: [CompressionAlgorithm.gzip, .deflate])
  func roundTrip(algorithm: CompressionAlgorithm) throws {
    for bytes in [[], [7], Self.plain] {
      #expect(try decompress(Packer.pack(bytes, algorithm), algorithm) == bytes)
    }
  }

  @Test("a gzip member may follow another one, a zlib stream may not")
  func members() throws {
    let packed = Packer.pack([1, 2]) + Packer.pack([]) + Packer.pack(Self.plain)
    #expect(try decompress(packed) == [1, 2] + Self.plain)
    #expect(isCorrupt(failure(Packer.pack([1], .deflate) + Packer.pack([2], .deflate), .deflate)))
  }

  @Test("the limit is exact, and includes all members", arguments: [CompressionAlgorithm.gzip, .deflate])
  func limits(algorithm: CompressionAlgorithm) throws {
    let packed = Packer.pack(Self.plain, algorithm)
    #expect(try decompress(packed, algorithm, limit: Self.plain.count) == Self.plain)
    #expect(failure(packed, algorithm, limit: Self.plain.count - 1) == .tooLarge)
    #expect(failure(Packer.bomb(64 << 20, algorithm), algorithm) == .tooLarge)
    if algorithm == .gzip { #expect(failure(packed + packed, limit: 2 * Self.plain.count - 1) == .tooLarge) }
  }

  @Test("truncated input and trailing bytes are errors, and no flipped bit changes the output")
  func corruption() {
    for algorithm in [CompressionAlgorithm.gzip, .deflate] {
      let text = Array("a text of some length, of some length".utf8)
      let packed = Packer.pack(text, algorithm)
      for count in packed.indices { #expect(isCorrupt(failure(Array(packed[..<count]), algorithm))) }
      for byte in packed.indices {
        for bit in 0..<8 {
          var broken = packed
          broken[byte] ^= 1 << bit
          // Some bits have no meaning: in gzip's header, and the padding of the last byte before the checksum.
          if let output = try? decompress(broken, algorithm) {
            #expect(output == text, "byte \(byte), bit \(bit)")
          }
        }
      }
      for trailing in [[0], [0x1f], [0x1f, 0x8b], [UInt8](repeating: 0, count: 40)] as [[UInt8]] {
        #expect(isCorrupt(failure(packed + trailing, algorithm)), "\(trailing)")
      }
    }
    #expect(isCorrupt(failure(Packer.pack([1], .deflate))))
    #expect(isCorrupt(failure(Packer.pack([1]), .deflate)))
  }

  @Test(
    "the memory of the output is close to its length",
    arguments: [0, 1, 3, 100, 5_000, 70_000])
  func memory(count: Int) throws {
    let packed = ByteBuffer(bytes: Packer.pack([UInt8](repeating: 1, count: count)))
    let output = try Decompression.decompress(packed, .gzip, limit: Self.limit)
    #expect(output.readableBytes == count)
    #expect(output.storageCapacity <= 2 * count)
  }

  @Test("an event loop decompresses only small input to small output")
  func small() throws {
    let small = ByteBuffer(bytes: Packer.pack([1, 2, 3]))
    #expect(
      try Decompression.decompressIfSmall(small, .gzip, limit: Self.limit) == ByteBuffer(bytes: [1, 2, 3]))
    #expect(
      try Decompression.decompressIfSmall(ByteBuffer(bytes: Packer.bomb(1 << 20)), .gzip, limit: Self.limit)
        == nil)
    let noise = (0..<10_000).map { _ in UInt8.random(in: 0...255) }
    #expect(
      try Decompression.decompressIfSmall(ByteBuffer(bytes: Packer.pack(noise)), .gzip, limit: Self.limit)
        == nil)
    #expect(throws: Decompression.Failure.tooLarge) {
      try Decompression.decompressIfSmall(small, .gzip, limit: 2)
    }
  }
}
