// FNV-1a, a fast 64-bit hash that is the same in every process. It does not protect against forgery; `TokenSigner` does.

/// An FNV-1a hash of the bytes added so far.
struct FNV1a {
  private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  /// Adds bytes.
  mutating func add(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
  }
}
