// Computes SHA-1 (RFC 3174), with which the protocol compares values. It has no security purpose: a collision only
// hides a change.
//
// This module implements SHA-1 because an app would otherwise build a cryptographic library for this function alone
// (docs/decisions/0028-hashes-of-the-protocols.md).

/// Computes SHA-1.
struct SHA1 {
  private var state: (a: UInt32, b: UInt32, c: UInt32, d: UInt32, e: UInt32) = (
    0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0
  )

  /// The digest, 20 bytes, of a message.
  static func digest(of message: UnsafeRawBufferPointer) -> [UInt8] {
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 80) { words in
      var hash = SHA1()
      var position = 0
      while position + 64 <= message.count {
        hash.add(UnsafeRawBufferPointer(rebasing: message[position..<(position + 64)]), words)
        position += 64
      }
      hash.addEnd(UnsafeRawBufferPointer(rebasing: message[position...]), length: message.count, words)
      let (a, b, c, d, e) = hash.state
      return [UInt8](unsafeUninitializedCapacity: 20) { bytes, count in
        let raw = UnsafeMutableRawBufferPointer(bytes)
        raw.storeBytes(of: a.bigEndian, toByteOffset: 0, as: UInt32.self)
        raw.storeBytes(of: b.bigEndian, toByteOffset: 4, as: UInt32.self)
        raw.storeBytes(of: c.bigEndian, toByteOffset: 8, as: UInt32.self)
        raw.storeBytes(of: d.bigEndian, toByteOffset: 12, as: UInt32.self)
        raw.storeBytes(of: e.bigEndian, toByteOffset: 16, as: UInt32.self)
        count = 20
      }
    }
  }

  /// Adds the last bytes with the padding and the length of the message.
  private mutating func addEnd(
    _ rest: UnsafeRawBufferPointer, length: Int, _ words: UnsafeMutableBufferPointer<UInt32>
  ) {
    let size = rest.count < 56 ? 64 : 128
    withUnsafeTemporaryAllocation(byteCount: size, alignment: 4) { block in
      block.initializeMemory(as: UInt8.self, repeating: 0)
      block.copyMemory(from: rest)
      block[rest.count] = 0x80
      block.storeBytes(of: (UInt64(length) &<< 3).bigEndian, toByteOffset: size - 8, as: UInt64.self)
      add(UnsafeRawBufferPointer(rebasing: block[..<64]), words)
      if size > 64 { add(UnsafeRawBufferPointer(rebasing: block[64...]), words) }
    }
  }

  /// Adds a block of 64 bytes.
  private mutating func add(
    _ block: UnsafeRawBufferPointer, _ words: UnsafeMutableBufferPointer<UInt32>
  ) {
    precondition(
      block.count == 64 && words.count == 80, "invariant: a block has 64 bytes, a schedule 80 words")
    var i = 0
    while i < 16 {
      words[i] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: 4 &* i, as: UInt32.self))
      i &+= 1
    }
    while i < 80 {
      words[i] = SHA1.rotate(words[i &- 3] ^ words[i &- 8] ^ words[i &- 14] ^ words[i &- 16], 1)
      i &+= 1
    }
    var (a, b, c, d, e) = state
    i = 0
    while i < 80 {
      let mixed: UInt32
      if i < 20 {
        mixed = (d ^ (b & (c ^ d))) &+ 0x5A82_7999
      } else if i < 40 {
        mixed = (b ^ c ^ d) &+ 0x6ED9_EBA1
      } else if i < 60 {
        mixed = (b & c | d & (b | c)) &+ 0x8F1B_BCDC
      } else {
        mixed = (b ^ c ^ d) &+ 0xCA62_C1D6
      }
      let next = SHA1.rotate(a, 5) &+ mixed &+ e &+ words[i]
      (e, d, c, b, a) = (d, c, SHA1.rotate(b, 30), a, next)
      i &+= 1
    }
    state = (state.a &+ a, state.b &+ b, state.c &+ c, state.d &+ d, state.e &+ e)
  }

  @inline(__always)
  private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word &<< count | word &>> (32 &- count)
  }
}
