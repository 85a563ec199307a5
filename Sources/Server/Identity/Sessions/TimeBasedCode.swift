// Time-based codes of authenticator apps (RFC 6238): HMAC-SHA-1, 30-second steps, six digits.

import Crypto

/// Checks time-based codes.
package enum TimeBasedCode {
  /// Seconds of a step.
  package static let period: Int64 = 30

  /// The code of a time step.
  package static func code(secret: [UInt8], step: Int64) -> String {
    let counter = withUnsafeBytes(of: step.bigEndian) { Array($0) }
    let hash = Array(
      HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: SymmetricKey(data: secret)))
    // RFC 4226, section 5.3: the last four bits choose four bytes, of which the highest bit is dropped.
    let offset = Int(hash[hash.count - 1] & 15)
    let number = hash[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
    let digits = String(number % 1_000_000)
    return String(repeating: "0", count: 6 - digits.utf8.count) + digits
  }

  /// The time step of a code; nil if the code belongs to no allowed step.
  /// - Parameters:
  ///   - seconds: the current time in seconds since the Unix epoch.
  ///   - adjacent: the steps by which the client's clock may differ.
  ///   - last: the step of the code that was used last. A code is never accepted twice.
  package static func step(
    of code: String, secret: [UInt8], seconds: Int64, adjacent: Int, after last: Int64
  ) -> Int64? {
    let current = seconds / period
    for step in (current - Int64(adjacent))...(current + Int64(adjacent)) where step > last {
      if self.code(secret: secret, step: step).utf8.elementsEqual(code.utf8) { return step }
    }
    return nil
  }
}

/// Base32 (RFC 4648, section 6), the form in which authenticator apps read secrets.
package enum Base32 {
  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  /// Encodes bytes without padding.
  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var (bits, bitCount): (UInt32, Int) = (0, 0)
    for byte in bytes {
      bits = (bits << 8 | UInt32(byte)) & 0xFFFF
      bitCount += 8
      while bitCount >= 5 {
        bitCount -= 5
        text.append(digits[Int(bits >> UInt32(bitCount) & 31)])
      }
    }
    if bitCount > 0 { text.append(digits[Int(bits << UInt32(5 - bitCount) & 31)]) }
    return String(decoding: text, as: UTF8.self)
  }
}
