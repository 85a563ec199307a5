// Reads the password scheme of an import from the hash options that `auth:import` and the Admin SDKs send.

import Identity
import JSON

extension IdentityCall {
  /// The scheme of the imported hashes; nil if the request names none.
  /// - Throws: `INVALID_HASH_ALGORITHM` and other errors for parameters out of range.
  func importScheme() throws(IdentityError) -> PasswordScheme? {
    guard let name = body.text("hashAlgorithm") else { return nil }
    let saltFirst = body.string("passwordHashOrder") == "SALT_AND_PASSWORD"
    let scheme: PasswordScheme
    switch name {
    case "SCRYPT":
      scheme = .firebaseScrypt(
        signerKey: try bytes("signerKey"), separator: try bytes("saltSeparator"), rounds: integer("rounds"),
        memoryCost: integer("memoryCost"))
    case "STANDARD_SCRYPT":
      scheme = .scrypt(
        cost: integer("cpuMemCost"), blockSize: integer("blockSize"),
        parallelism: integer("parallelization"), length: integer("dkLen"))
    case "BCRYPT": scheme = .bcrypt
    case "PBKDF2_SHA256": scheme = .pbkdf2(.sha256, rounds: integer("rounds"))
    case "PBKDF_SHA1": scheme = .pbkdf2(.sha1, rounds: integer("rounds"))
    case "ARGON2": scheme = try argon2()
    default:
      let isAuthenticated = name.hasPrefix("HMAC_")
      guard let digest = PasswordScheme.Digest(rawValue: isAuthenticated ? String(name.dropFirst(5)) : name)
      else { throw .rejected("INVALID_HASH_ALGORITHM", "The algorithm '\(name.prefix(40))' is unknown.") }
      scheme =
        isAuthenticated
        ? .hmac(digest, key: try bytes("signerKey"), saltFirst: saltFirst)
        : .digest(digest, rounds: integer("rounds"), saltFirst: saltFirst)
    }
    try scheme.validate()
    return scheme
  }

  private func argon2() throws(IdentityError) -> PasswordScheme {
    let parameters = body.object("argon2Parameters") ?? [:]
    func integer(_ name: String) -> Int { Int(clamping: parameters[name]?.int ?? 0) }
    guard let variant = parameters["hashType"]?.string.flatMap(PasswordScheme.Argon2Variant.init(rawValue:))
    else { throw .rejected("INVALID_HASH_ALGORITHM", "hashType must be ARGON2_D, ARGON2_I or ARGON2_ID.") }
    let data = try Self.bytes(parameters["associatedData"]?.string ?? "", "associatedData")
    return .argon2(
      variant, memoryKiB: integer("memoryCostKib"), iterations: integer("iterations"),
      parallelism: integer("parallelism"), length: integer("hashLengthBytes"),
      version: parameters["version"]?.string == "VERSION_10" ? 0x10 : 0x13, associatedData: data)
  }

  private func integer(_ name: String) -> Int { Int(clamping: body.int(name) ?? 0) }

  private func bytes(_ name: String) throws(IdentityError) -> [UInt8] {
    try Self.bytes(body.string(name) ?? "", name)
  }

  private static func bytes(_ text: String, _ name: String) throws(IdentityError) -> [UInt8] {
    guard let bytes = Base64.decode(text.utf8, .either, paddedBy: [UInt8(ascii: "=")]) else {
      throw .invalidBody("/\(name) must be Base64")
    }
    return bytes
  }
}
