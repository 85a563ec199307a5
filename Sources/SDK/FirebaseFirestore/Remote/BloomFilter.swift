// The set of names that an existence filter carries, without the names.
//
// Invariant: "not contained" is certain; "contained" may be wrong.

#if canImport(CryptoKit)
  import CryptoKit
#else
  import Crypto
#endif

/// A bloom filter over full document names, hashed by MD5.
struct BloomFilter: Equatable, Sendable {
  private let bitmap: [UInt8]
  private let hashCount: Int
  private let bitCount: UInt64

  /// Makes a filter; nil where the parts contradict each other or hold no bit.
  init?(bitmap: [UInt8], padding: Int, hashCount: Int) {
    guard !bitmap.isEmpty, (0..<8).contains(padding), hashCount > 0, bitmap.count * 8 > padding else {
      return nil
    }
    self.bitmap = bitmap
    self.hashCount = hashCount
    bitCount = UInt64(bitmap.count * 8 - padding)
  }

  /// Whether a name may be in the set.
  func mightContain(_ name: String) -> Bool {
    let digest = Array(Insecure.MD5.hash(data: Array(name.utf8)))
    let first = BloomFilter.number(digest.prefix(8))
    let second = BloomFilter.number(digest.suffix(8))
    for index in 0..<hashCount {
      let bit = (first &+ UInt64(index) &* second) % bitCount
      if bitmap[Int(bit / 8)] & (1 << UInt8(bit % 8)) == 0 { return false }
    }
    return true
  }

  private static func number(_ bytes: some Collection<UInt8>) -> UInt64 {
    var result: UInt64 = 0
    for (index, byte) in bytes.enumerated() { result |= UInt64(byte) << UInt64(index * 8) }
    return result
  }
}
