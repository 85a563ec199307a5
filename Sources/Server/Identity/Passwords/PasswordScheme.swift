// The algorithms of stored passwords: the server's default, and every algorithm of `auth:import`.
//
// Invariant: the parameters of a scheme are within the bounds of `validate`. So the verification of a stored hash takes
// at most about a second of processor time and 64 MiB of memory.

import JSON

/// The algorithm of a password hash with its parameters.
package enum PasswordScheme: Sendable, Equatable {
  /// A hash function of the digest and HMAC schemes.
  package enum Digest: String, Sendable, CaseIterable {
    case md5 = "MD5"
    case sha1 = "SHA1"
    case sha256 = "SHA256"
    case sha512 = "SHA512"
  }

  /// A variant of Argon2.
  package enum Argon2Variant: String, Sendable {
    case d = "ARGON2_D"
    case i = "ARGON2_I"
    case id = "ARGON2_ID"
  }

  /// The text that the Auth emulator stores, which contains the password.
  case emulator
  /// Firebase's variant of scrypt. `memoryCost` is the binary logarithm of N, and `rounds` is the block size r.
  case firebaseScrypt(signerKey: [UInt8], separator: [UInt8], rounds: Int, memoryCost: Int)
  /// scrypt (RFC 7914). `cost` is N.
  case scrypt(cost: Int, blockSize: Int, parallelism: Int, length: Int)
  /// bcrypt, whose hash is the text `$2a$…`.
  case bcrypt
  /// PBKDF2 (RFC 8018) with HMAC-SHA-256 or HMAC-SHA-1.
  case pbkdf2(Digest, rounds: Int)
  /// HMAC of the password and salt.
  case hmac(Digest, key: [UInt8], saltFirst: Bool)
  /// A digest of the password and salt, which is hashed again for each further round.
  case digest(Digest, rounds: Int, saltFirst: Bool)
  /// Argon2 (RFC 9106).
  case argon2(
    Argon2Variant, memoryKiB: Int, iterations: Int, parallelism: Int, length: Int, version: Int,
    associatedData: [UInt8])

  /// The default of new passwords in production: scrypt with 16 MiB of memory, as the hosted product uses.
  package static let standard = PasswordScheme.scrypt(cost: 16_384, blockSize: 8, parallelism: 1, length: 32)

  /// Maximum product of the scrypt parameters N, r and p.
  static let maximumScryptWork = 1 << 20
  /// Maximum bytes of memory of one hash.
  static let maximumMemory = 64 << 20

  /// Checks the bounds of the parameters.
  /// - Throws: an error in the terms of the API.
  package func validate() throws(IdentityError) {
    switch self {
    case .emulator, .bcrypt, .hmac: return
    case .firebaseScrypt(let key, _, let rounds, let memoryCost):
      guard !key.isEmpty else { throw .rejected("INVALID_HASH_KEY", "signerKey must not be empty.") }
      try Self.check(rounds, 1...8, "INVALID_HASH_ROUNDS", "rounds")
      try Self.check(memoryCost, 1...14, "INVALID_HASH_MEMORY_COST", "memoryCost")
    case .scrypt(let cost, let blockSize, let parallelism, let length):
      try Self.check(cost, 2...(1 << 20), "INVALID_HASH_MEMORY_COST", "cpuMemCost")
      guard cost & (cost - 1) == 0 else {
        throw .rejected("INVALID_HASH_MEMORY_COST", "cpuMemCost must be a power of two.")
      }
      try Self.check(blockSize, 1...1024, "INVALID_HASH_BLOCK_SIZE", "blockSize")
      try Self.check(parallelism, 1...1024, "INVALID_HASH_PARALLELIZATION", "parallelization")
      try Self.check(length, 1...1024, "INVALID_HASH_DERIVED_KEY_LENGTH", "dkLen")
      guard cost * blockSize * parallelism <= Self.maximumScryptWork,
        128 * cost * blockSize <= Self.maximumMemory
      else {
        throw .rejected(
          "INVALID_HASH_MEMORY_COST", "cpuMemCost, blockSize and parallelization are too large together.")
      }
    case .pbkdf2(_, let rounds): try Self.check(rounds, 0...120_000, "INVALID_HASH_ROUNDS", "rounds")
    case .digest(let digest, let rounds, _):
      try Self.check(rounds, (digest == .md5 ? 0 : 1)...8192, "INVALID_HASH_ROUNDS", "rounds")
    case .argon2(_, let memory, let iterations, let parallelism, let length, let version, let data):
      try Self.check(parallelism, 1...16, "INVALID_HASH_PARALLELIZATION", "parallelism")
      try Self.check(memory, (8 * parallelism)...32_768, "INVALID_HASH_MEMORY_COST", "memoryCostKib")
      try Self.check(iterations, 1...16, "INVALID_HASH_ROUNDS", "iterations")
      try Self.check(length, 4...1024, "INVALID_HASH_DERIVED_KEY_LENGTH", "hashLengthBytes")
      guard version == 0x10 || version == 0x13, data.count <= 32 else {
        throw .rejected("INVALID_HASH_ALGORITHM", "The version or the associated data is invalid.")
      }
    }
  }

  private static func check(
    _ value: Int, _ range: ClosedRange<Int>, _ code: String, _ name: String
  ) throws(IdentityError) {
    guard range.contains(value) else {
      throw .rejected(code, "\(name) must be from \(range.lowerBound) to \(range.upperBound).")
    }
  }
}

/// A stored password: the hash in the form of the API, its salt and its scheme.
package struct StoredPassword: Sendable, Equatable {
  /// The hash: URL-safe Base64, or the emulator's text.
  package var hash: String
  /// The salt: URL-safe Base64, or the emulator's text.
  package var salt: String?
  package var scheme: PasswordScheme

  /// Creates a stored password.
  package init(hash: String, salt: String?, scheme: PasswordScheme) {
    self.hash = hash
    self.salt = salt
    self.scheme = scheme
  }

  /// The password in the form of the Auth emulator, whose stored text contains it.
  package static func emulator(_ password: String, salt: String? = nil) -> StoredPassword {
    let salt = salt ?? "fakeSalt" + RandomText.identifier(20)
    return StoredPassword(hash: emulatorHash(password, salt), salt: salt, scheme: .emulator)
  }

  static func emulatorHash(_ password: String, _ salt: String) -> String {
    "fakeHash:salt=\(salt):password=\(password)"
  }

  var storedForm: JSONObject {
    var object = scheme.storedForm
    object["hash"] = .string(hash)
    object.set("salt", salt)
    return object
  }

  init(storedForm object: JSONObject) throws(CorruptRow) {
    guard let hash = object["hash"]?.string else { throw CorruptRow("a password has no hash") }
    self.init(
      hash: hash, salt: object["salt"]?.string, scheme: try PasswordScheme(storedForm: object))
  }
}

extension PasswordScheme {
  fileprivate var storedForm: JSONObject {
    func bytes(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes)) }
    func int(_ value: Int) -> JSONValue { .int(Int64(value)) }
    switch self {
    case .emulator: return ["scheme": .string("emulator")]
    case .firebaseScrypt(let key, let separator, let rounds, let memoryCost):
      return [
        "scheme": .string("firebaseScrypt"), "key": bytes(key), "separator": bytes(separator),
        "rounds": int(rounds), "memoryCost": int(memoryCost),
      ]
    case .scrypt(let cost, let blockSize, let parallelism, let length):
      return [
        "scheme": .string("scrypt"), "cost": int(cost), "blockSize": int(blockSize),
        "parallelism": int(parallelism), "length": int(length),
      ]
    case .bcrypt: return ["scheme": .string("bcrypt")]
    case .pbkdf2(let digest, let rounds):
      return ["scheme": .string("pbkdf2"), "digest": .string(digest.rawValue), "rounds": int(rounds)]
    case .hmac(let digest, let key, let saltFirst):
      return [
        "scheme": .string("hmac"), "digest": .string(digest.rawValue), "key": bytes(key),
        "saltFirst": .bool(saltFirst),
      ]
    case .digest(let digest, let rounds, let saltFirst):
      return [
        "scheme": .string("digest"), "digest": .string(digest.rawValue), "rounds": int(rounds),
        "saltFirst": .bool(saltFirst),
      ]
    case .argon2(let variant, let memory, let iterations, let parallelism, let length, let version, let data):
      return [
        "scheme": .string("argon2"), "variant": .string(variant.rawValue), "memory": int(memory),
        "iterations": int(iterations), "parallelism": int(parallelism), "length": int(length),
        "version": int(version), "data": bytes(data),
      ]
    }
  }

  fileprivate init(storedForm object: JSONObject) throws(CorruptRow) {
    func int(_ name: String) throws(CorruptRow) -> Int {
      guard let value = object[name]?.int, let int = Int(exactly: value) else {
        throw CorruptRow("a password scheme has no \(name)")
      }
      return int
    }
    func bytes(_ name: String) throws(CorruptRow) -> [UInt8] {
      guard let text = object[name]?.string,
        let bytes = Base64.decode(text.utf8, .standard, paddedBy: [UInt8(ascii: "=")])
      else { throw CorruptRow("a password scheme has no \(name)") }
      return bytes
    }
    func digest() throws(CorruptRow) -> Digest {
      guard let digest = object["digest"]?.string.flatMap(Digest.init(rawValue:)) else {
        throw CorruptRow("a password scheme has no digest")
      }
      return digest
    }
    let saltFirst = object["saltFirst"]?.bool ?? false
    switch object["scheme"]?.string {
    case "emulator": self = .emulator
    case "firebaseScrypt":
      self = .firebaseScrypt(
        signerKey: try bytes("key"), separator: try bytes("separator"), rounds: try int("rounds"),
        memoryCost: try int("memoryCost"))
    case "scrypt":
      self = .scrypt(
        cost: try int("cost"), blockSize: try int("blockSize"), parallelism: try int("parallelism"),
        length: try int("length"))
    case "bcrypt": self = .bcrypt
    case "pbkdf2": self = .pbkdf2(try digest(), rounds: try int("rounds"))
    case "hmac": self = .hmac(try digest(), key: try bytes("key"), saltFirst: saltFirst)
    case "digest": self = .digest(try digest(), rounds: try int("rounds"), saltFirst: saltFirst)
    case "argon2":
      guard let variant = object["variant"]?.string.flatMap(Argon2Variant.init(rawValue:)) else {
        throw CorruptRow("a password scheme has no variant")
      }
      self = .argon2(
        variant, memoryKiB: try int("memory"), iterations: try int("iterations"),
        parallelism: try int("parallelism"), length: try int("length"), version: try int("version"),
        associatedData: try bytes("data"))
    default: throw CorruptRow("a password scheme is unknown")
    }
  }
}
