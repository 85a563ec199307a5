// A bloom filter over document names. A client uses it to find the cached documents that no longer match a query.
//
// Invariant: the filter contains every inserted name; false positives are rare. Bit i of a name is
// (h1 + i·h2) mod 2^64 mod size, where h1 and h2 are the little-endian halves of the name's MD5.

/// A bloom filter over document names.
public struct BloomFilter: Hashable, Sendable {
  /// The bits, the lowest of the first byte first.
  public private(set) var bitmap: [UInt8]
  /// Unused high bits of the last byte, 0 to 7.
  public let padding: Int
  /// Bits tested for each name.
  public let hashCount: Int

  /// Makes a filter that a server sent; nil if its numbers are inconsistent.
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

  /// Makes an empty filter for `count` names, with about 20 bits a name: at most one false positive in 10,000.
  ///
  /// The number of bits is prime: the hashes of a name step through the bits by a fixed distance, which must not share
  /// a factor with the size. It is at least 64, because 20 bits a name are too few for that rate if there are only one
  /// or two names.
  public init(expecting count: Int) {
    let bits = count == 0 ? 0 : BloomFilter.prime(from: max(count * 20, 64))
    bitmap = [UInt8](repeating: 0, count: (bits + 7) / 8)
    padding = bitmap.count * 8 - bits
    // Bits per name times ln 2 is the number of hashes with the fewest false positives.
    hashCount = count == 0 ? 0 : 14
  }

  /// Makes a filter that contains these names.
  public init(_ names: some Collection<DocumentName>) {
    self.init(expecting: names.count)
    for name in names { insert(name.description) }
  }

  /// The smallest prime number that is at least `number`.
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

  /// Whether a name may be in the set. If the result is false, the name is not in the set.
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
    (first, second) = name.withUTF8 { MD5.digest(of: UnsafeRawBufferPointer($0)) }
  }

  func bit(_ index: Int, of count: Int) -> Int {
    Int((first &+ UInt64(index) &* second) % UInt64(count))
  }
}
