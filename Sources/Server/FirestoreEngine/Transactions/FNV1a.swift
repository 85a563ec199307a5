// FNV-1a, a fast 64-bit hash. It detects accidental corruption of tokens, but not forgery. A forged token is
// harmless, since tokens grant no rights.

/// An FNV-1a hash of the bytes added so far.
struct FNV1a {
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325

  /// Begins a hash. Different seeds give unrelated hashes of the same bytes.
  init(seed: UInt64 = 0) { hash ^= seed }

  /// Adds bytes.
  mutating func add(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
  }
}
