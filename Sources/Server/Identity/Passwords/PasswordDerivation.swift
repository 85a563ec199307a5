// Derives password hashes. A function blocks for up to a second, so `PasswordHasher` calls it on dedicated threads.

import Crypto
import CryptoExtras
import Foundation
import JSON

#if canImport(Glibc)
  import CCrypt
#endif
import CArgon2

extension PasswordScheme {
  /// Whether a hash is the hash of a password. Compares in constant time. Returns false if the stored hash is not
  /// valid.
  func matches(_ password: String, hash: String, salt: String?) -> Bool {
    switch self {
    case .emulator:
      return Self.areEqual(
        Array(StoredPassword.emulatorHash(password, salt ?? "").utf8), Array(hash.utf8))
    case .bcrypt:
      guard let expected = Self.decode(hash), let actual = Self.bcrypt(password, expected) else {
        return false
      }
      return Self.areEqual(actual, expected)
    default:
      guard let expected = Self.decode(hash), !expected.isEmpty, let salt = Self.decode(salt ?? ""),
        let actual = derive(password, salt: salt, count: expected.count)
      else { return false }
      return Self.areEqual(actual, expected)
    }
  }

  /// Hashes a password with a random salt.
  /// - Returns: nil if the scheme cannot hash with its parameters.
  func hash(_ password: String) -> StoredPassword? {
    let salt = RandomText.bytes(16)
    guard let bytes = derive(password, salt: salt, count: 32) else { return nil }
    return StoredPassword(
      hash: Base64.encode(bytes, .urlSafe), salt: Base64.encode(salt, .urlSafe), scheme: self)
  }

  /// Derives the hash of a password; nil if the parameters are invalid.
  /// - Parameter count: the number of bytes of the stored hash, for schemes that do not determine it.
  private func derive(_ password: String, salt: [UInt8], count: Int) -> [UInt8]? {
    let passphrase = Array(password.utf8)
    switch self {
    case .emulator, .bcrypt: return nil
    case .firebaseScrypt(let signerKey, let separator, let rounds, let memoryCost):
      guard (1...14).contains(memoryCost),
        let key = Self.scrypt(
          passphrase, salt + separator, cost: 1 << memoryCost, blockSize: rounds, parallelism: 1, count: 64),
        let nonce = try? AES._CTR.Nonce(nonceBytes: [UInt8](repeating: 0, count: 16)),
        let cipher = try? AES._CTR.encrypt(signerKey, using: SymmetricKey(data: key.prefix(32)), nonce: nonce)
      else { return nil }
      return Array(cipher)
    case .scrypt(let cost, let blockSize, let parallelism, let length):
      return Self.scrypt(
        passphrase, salt, cost: cost, blockSize: blockSize, parallelism: parallelism, count: length)
    case .pbkdf2(let digest, let rounds):
      let function: KDF.Insecure.PBKDF2.HashFunction = digest == .sha1 ? .insecureSHA1 : .sha256
      let key = try? KDF.Insecure.PBKDF2.deriveKey(
        from: passphrase, salt: salt, using: function, outputByteCount: count,
        unsafeUncheckedRounds: max(rounds, 1))
      return key?.withUnsafeBytes { Array($0) }
    case .hmac(let digest, let key, let saltFirst):
      return digest.authenticate(saltFirst ? salt + passphrase : passphrase + salt, key: key)
    case .digest(let digest, let rounds, let saltFirst):
      var bytes = digest.hash(saltFirst ? salt + passphrase : passphrase + salt)
      for _ in 1..<max(rounds, 1) { bytes = digest.hash(bytes) }
      return bytes
    case .argon2(let variant, let memory, let iterations, let parallelism, let length, let version, let data):
      return Self.argon2(
        passphrase, salt, variant, UInt32(memory), UInt32(iterations), UInt32(parallelism), length,
        UInt32(version), data)
    }
  }

  static func scrypt(
    _ password: [UInt8], _ salt: [UInt8], cost: Int, blockSize: Int, parallelism: Int, count: Int
  ) -> [UInt8]? {
    let key = try? KDF.Scrypt.deriveKey(
      from: password, salt: salt, outputByteCount: count, rounds: cost, blockSize: blockSize,
      parallelism: parallelism, maxMemory: maximumMemory + (4 << 20))
    return key?.withUnsafeBytes { Array($0) }
  }

  /// Computes a bcrypt hash with the salt and cost of a stored one.
  private static func bcrypt(_ password: String, _ stored: [UInt8]) -> [UInt8]? {
    #if canImport(Glibc)
      guard bcryptCost(stored) != nil, !password.utf8.contains(0) else { return nil }
      let text = String(decoding: stored, as: UTF8.self)
      let data = UnsafeMutablePointer<crypt_data>.allocate(capacity: 1)
      defer { data.deallocate() }
      // SAFETY: crypt_data is a C structure for which all-zero bytes are the documented initial state. The result of
      // crypt_r points into it and is copied before it is freed.
      memset(data, 0, MemoryLayout<crypt_data>.size)
      guard let result = crypt_r(password, text, data) else { return nil }
      return Array(String(cString: result).utf8)
    #else
      // The C library of this system has no bcrypt.
      return nil
    #endif
  }

  /// The binary logarithm of the rounds of a bcrypt hash; nil if it cannot be verified here.
  static func bcryptCost(_ stored: [UInt8]) -> Int? {
    #if canImport(Glibc)
      // "$2a$10$", 22 characters of salt and 31 of hash. Costs above 14 would take more than a second.
      let settings = stored.prefix(7)
      guard stored.count == 60, settings.starts(with: "$2".utf8), settings.last == UInt8(ascii: "$"),
        let cost = Int(String(decoding: settings.dropFirst(4).prefix(2), as: UTF8.self)),
        (4...14).contains(cost)
      else { return nil }
      return cost
    #else
      return nil
    #endif
  }

  private static func argon2(
    _ password: [UInt8], _ salt: [UInt8], _ variant: Argon2Variant, _ memory: UInt32, _ iterations: UInt32,
    _ parallelism: UInt32, _ length: Int, _ version: UInt32, _ associatedData: [UInt8]
  ) -> [UInt8]? {
    var (password, salt, data) = (password, salt, associatedData)
    var output = [UInt8](repeating: 0, count: length)
    let type: argon2_type =
      switch variant {
      case .d: Argon2_d
      case .i: Argon2_i
      case .id: Argon2_id
      }
    let counts = (password.count, salt.count, data.count)
    // SAFETY: every pointer is valid for its count until argon2_ctx returns, and the library does not keep them.
    let code = output.withUnsafeMutableBufferPointer { output in
      password.withUnsafeMutableBufferPointer { password in
        salt.withUnsafeMutableBufferPointer { salt in
          data.withUnsafeMutableBufferPointer { data in
            var context = argon2_context()
            context.out = output.baseAddress
            context.outlen = UInt32(length)
            context.pwd = password.baseAddress
            context.pwdlen = UInt32(counts.0)
            context.salt = salt.baseAddress
            context.saltlen = UInt32(counts.1)
            context.ad = data.baseAddress
            context.adlen = UInt32(counts.2)
            context.t_cost = iterations
            context.m_cost = memory
            context.lanes = parallelism
            // One thread computes all lanes, so that a hash occupies one thread of the hasher's pool only.
            context.threads = 1
            context.version = version
            return argon2_ctx(&context, type)
          }
        }
      }
    }
    return code == Int32(ARGON2_OK.rawValue) ? output : nil
  }

  /// Decodes Base64 of either alphabet with optional padding.
  static func decode(_ text: String) -> [UInt8]? {
    Base64.decode(text.utf8, .either, paddedBy: [UInt8(ascii: "=")])
  }

  private static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    var difference: UInt8 = 0
    for (x, y) in zip(a, b) { difference |= x ^ y }
    return difference == 0
  }
}

extension PasswordScheme.Digest {
  fileprivate func hash(_ bytes: [UInt8]) -> [UInt8] {
    switch self {
    case .md5: Array(Insecure.MD5.hash(data: bytes))
    case .sha1: Array(Insecure.SHA1.hash(data: bytes))
    case .sha256: Array(SHA256.hash(data: bytes))
    case .sha512: Array(SHA512.hash(data: bytes))
    }
  }

  fileprivate func authenticate(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
    let key = SymmetricKey(data: key)
    return switch self {
    case .md5: Array(HMAC<Insecure.MD5>.authenticationCode(for: bytes, using: key))
    case .sha1: Array(HMAC<Insecure.SHA1>.authenticationCode(for: bytes, using: key))
    case .sha256: Array(HMAC<SHA256>.authenticationCode(for: bytes, using: key))
    case .sha512: Array(HMAC<SHA512>.authenticationCode(for: bytes, using: key))
    }
  }
}
