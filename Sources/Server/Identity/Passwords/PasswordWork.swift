// Makes the verification of every password take the same work. So the time shows neither whether an account exists nor
// how its password is stored.
//
// The verification of a hash of the default scheme takes as much work as a sign-in to an unknown account. Imported
// hashes may take less; `addWork(to:)` adds the difference. If an imported hash takes more, the time shows it until the
// next sign-in to its account, which hashes the password again with the default scheme.

extension PasswordScheme {
  /// The parameter N of the added work. It equals that of the default scheme, so that the added work uses the same
  /// memory as a hash by that scheme.
  private static let addedCost = 16_384

  /// Does additional work after a verification, so that the verification and the added work take as much as one hash by
  /// this scheme.
  ///
  /// - Parameter work: the work of the verification, see ``verificationWork(_:hash:salt:)``.
  /// - Returns: the added work.
  @discardableResult
  func addWork(to work: Int) -> Int {
    let blocks = (hashWork - work + Self.addedCost / 2) / Self.addedCost
    guard blocks > 0 else { return 0 }
    _ = Self.scrypt([], [], cost: Self.addedCost, blockSize: blocks, parallelism: 1, count: 32)
    return blocks * Self.addedCost
  }

  /// The approximate work of ``matches(_:hash:salt:)`` in units of scrypt: the product of its N, r and p. A unit takes
  /// about 0.4 µs. The factors of the other schemes are measured.
  func verificationWork(_ password: String, hash: String, salt: String?) -> Int {
    // A hash that cannot be read is rejected without work.
    guard let bytes = Self.decode(hash), !bytes.isEmpty else { return 0 }
    if case .bcrypt = self {
      guard let cost = Self.bcryptCost(bytes), !password.utf8.contains(0) else { return 0 }
      return 128 << cost
    }
    return Self.decode(salt ?? "") == nil ? 0 : hashWork
  }

  /// The approximate work of a hash with the parameters of the scheme; zero for bcrypt, whose hashes contain them.
  private var hashWork: Int {
    switch self {
    case .emulator, .hmac, .bcrypt: 0
    case .firebaseScrypt(_, _, let rounds, let memoryCost): rounds << memoryCost
    case .scrypt(let cost, let blockSize, let parallelism, _): cost * blockSize * parallelism
    case .pbkdf2(_, let rounds): rounds
    case .digest(_, let rounds, _): rounds / 2
    case .argon2(_, let memory, let iterations, _, _, _, _): 2 * memory * iterations
    }
  }
}
