// The set of names that tells a client which of its documents are gone.
//
// Invariant: every inserted name is contained; a stranger may be claimed, rarely. Entry i of a name is bit
// (h1 + i·h2) mod 2^64 mod size, where h1 and h2 are the little-endian halves of the name's MD5.

import Crypto

/// A bloom filter over document names.
public struct BloomFilter: Hashable, Sendable {
  /// The bits, the lowest of the first byte first.
  public private(set) var bitmap: [UInt8]
  /// Unused high bits of the last byte, 0 to 7.
  public let padding: Int
  /// Bits tested for each name.
  public let hashCount: Int

  /// A filter as it came from a server; nil if its numbers do not belong together.
  public init?(bitmap: [UInt8], padding: Int, hashCount: Int) {
    guard padding >= 0, padding < 8, hashCount >= 0 else { return nil }
    if bitmap.isEmpty {
      guard padding == 0 else { return nil }
    } else if hashCount == 0 {
      return nil
    }
    self.bitmap = bitmap
    self.padding = padding
    self.hashCount = hashCount
  }

  /// An empty filter for a number of names: some 20 bits each, so that one stranger in ten thousand or
  /// fewer is claimed. The number of bits is prime, since a name's hashes step through the bits by a fixed
  /// distance, which must not share a factor with it; and some 64 at least, since averages need a few names.
  public init(expecting count: Int) {
    let bits = count == 0 ? 0 : BloomFilter.prime(from: max(count * 20, 64))
    bitmap = [UInt8](repeating: 0, count: (bits + 7) / 8)
    padding = bitmap.count * 8 - bits
    // Bits per name times ln 2 is the number of hashes with the fewest false claims.
    hashCount = count == 0 ? 0 : 14
  }

  /// A filter that contains names.
  public init(_ names: some Collection<DocumentName>) {
    self.init(expecting: names.count)
    for name in names { insert(name.description) }
  }

  /// The least prime number not below another.
  private static func prime(from number: Int) -> Int {
    var candidate = number | 1
    while !stride(from: 3, through: Int(Double(candidate).squareRoot()), by: 2)
      .allSatisfy({ !candidate.isMultiple(of: $0) })
    {
      candidate += 2
    }
    return candidate
  }

  /// The number of bits.
  public var bitCount: Int { bitmap.count * 8 - padding }

  /// Adds a name.
  public mutating func insert(_ name: String) {
    guard bitCount > 0 else { return }
    let hash = BloomHash(name)
    for index in 0..<hashCount {
      let bit = hash.bit(index, of: bitCount)
      bitmap[bit / 8] |= 1 << UInt8(bit % 8)
    }
  }

  /// Whether a name may be in the set; false is certain.
  public func mightContain(_ name: String) -> Bool {
    guard bitCount > 0 else { return false }
    let hash = BloomHash(name)
    for index in 0..<hashCount {
      let bit = hash.bit(index, of: bitCount)
      if bitmap[bit / 8] & (1 << UInt8(bit % 8)) == 0 { return false }
    }
    return true
  }
}

/// The two halves of a name's MD5.
private struct BloomHash {
  let first: UInt64
  let second: UInt64

  init(_ name: String) {
    var name = name
    var md5 = Insecure.MD5()
    name.withUTF8 { md5.update(bufferPointer: UnsafeRawBufferPointer($0)) }
    (first, second) = md5.finalize().withUnsafeBytes { digest in
      (
        UInt64(littleEndian: digest.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        UInt64(littleEndian: digest.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
  }

  func bit(_ index: Int, of count: Int) -> Int {
    Int((first &+ UInt64(index) &* second) % UInt64(count))
  }
}
