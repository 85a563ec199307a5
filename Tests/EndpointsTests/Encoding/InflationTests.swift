// Compressed bytes: whole, broken, in several members, and such as stand for far more than they are.

import NIOCore
import Testing

@testable import Endpoints

@Suite("Inflation")
struct InflationTests {
  private static let limit = 1 << 20
  private static let plain = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7 &* 31) }

  private func unpack(
    _ packed: [UInt8], _ packing: CompressionAlgorithm = .gzip, limit: Int = limit
  ) throws -> [UInt8] {
    Array(try Decompression.unpack(ByteBuffer(bytes: packed), packing, limit: limit).readableBytesView)
  }

  private func failure(_ packed: [UInt8], _ packing: CompressionAlgorithm = .gzip, limit: Int = limit) -> Decompression
    .Failure?
  {
    do throws(Decompression.Failure) {
      _ = try Decompression.unpack(ByteBuffer(bytes: packed), packing, limit: limit)
      return nil
    } catch {
      return error
    }
  }

  private func isDamaged(_ failure: Decompression.Failure?) -> Bool {
    if case .damaged = failure { true } else { false }
  }

  @Test("what was packed comes out again", arguments: [CompressionAlgorithm.gzip, .deflate])
  func roundTrip(packing: CompressionAlgorithm) throws {
    for bytes in [[], [7], Self.plain] {
      #expect(try unpack(Packer.pack(bytes, packing), packing) == bytes)
    }
  }

  @Test("one gzip may follow another")
  func members() throws {
    let packed = Packer.pack([1, 2]) + Packer.pack([]) + Packer.pack(Self.plain)
    #expect(try unpack(packed) == [1, 2] + Self.plain)
    // Another zlib stream may not.
    #expect(isDamaged(failure(Packer.pack([1], .deflate) + Packer.pack([2], .deflate), .deflate)))
  }

  @Test("the limit is kept to the byte, and over all members together", arguments: [CompressionAlgorithm.gzip, .deflate])
  func limits(packing: CompressionAlgorithm) throws {
    let packed = Packer.pack(Self.plain, packing)
    #expect(try unpack(packed, packing, limit: Self.plain.count) == Self.plain)
    #expect(failure(packed, packing, limit: Self.plain.count - 1) == .tooLarge)
    #expect(failure(Packer.bomb(64 << 20, packing), packing) == .tooLarge)
    if packing == .gzip { #expect(failure(packed + packed, limit: 2 * Self.plain.count - 1) == .tooLarge) }
  }

  @Test("every cut, every flipped bit and everything behind the end is refused, and nothing crashes")
  func damage() {
    for packing in [CompressionAlgorithm.gzip, .deflate] {
      let text = Array("a text of some length, of some length".utf8)
      let packed = Packer.pack(text, packing)
      for count in packed.indices { #expect(isDamaged(failure(Array(packed[..<count]), packing))) }
      for byte in packed.indices {
        for bit in 0..<8 {
          var broken = packed
          broken[byte] ^= 1 << bit
          // Some bits mean nothing: of gzip's header, and those that fill the last byte before the checksum.
          if let same = try? unpack(broken, packing) { #expect(same == text, "byte \(byte), bit \(bit)") }
        }
      }
      for trailing in [[0], [0x1f], [0x1f, 0x8b], [UInt8](repeating: 0, count: 40)] as [[UInt8]] {
        #expect(isDamaged(failure(packed + trailing, packing)), "\(trailing)")
      }
    }
    #expect(isDamaged(failure(Packer.pack([1], .deflate))))
    #expect(isDamaged(failure(Packer.pack([1]), .deflate)))
  }

  @Test(
    "what is unpacked takes about as much memory as it is counted for",
    arguments: [0, 1, 3, 100, 5_000, 70_000])
  func room(count: Int) throws {
    let packed = ByteBuffer(bytes: Packer.pack([UInt8](repeating: 1, count: count)))
    let unpacked = try Decompression.unpack(packed, .gzip, limit: Self.limit)
    #expect(unpacked.readableBytes == count)
    #expect(unpacked.storageCapacity <= 2 * count)
  }

  @Test("on an event loop only what is little work is unpacked")
  func atOnce() throws {
    let small = ByteBuffer(bytes: Packer.pack([1, 2, 3]))
    #expect(try Decompression.atOnce(small, .gzip, limit: Self.limit) == ByteBuffer(bytes: [1, 2, 3]))
    #expect(try Decompression.atOnce(ByteBuffer(bytes: Packer.bomb(1 << 20)), .gzip, limit: Self.limit) == nil)
    let noise = (0..<10_000).map { _ in UInt8.random(in: 0...255) }
    #expect(try Decompression.atOnce(ByteBuffer(bytes: Packer.pack(noise)), .gzip, limit: Self.limit) == nil)
    #expect(throws: Decompression.Failure.tooLarge) {
      try Decompression.atOnce(small, .gzip, limit: 2)
    }
  }
}
