// Signs the tokens of one database: page tokens and transaction tokens. The key is random and stored with the database,
// so that tokens remain valid after a restart.
//
// Invariant: a code is valid only for the same kind of token, the same contents, the same owner and the same database.

import Crypto
import Foundation
import OrderedStore

/// Makes and verifies the authentication codes of tokens.
struct TokenSigner: Sendable {
  /// The kind of a token.
  enum Kind: UInt8 {
    case page = 1
    case transaction = 2
  }

  /// The bytes of a code: HMAC-SHA-256, truncated to half.
  static let codeBytes = 16
  private static let keyBytes = 32

  private let key: SymmetricKey

  /// Makes a signer with a random key. No earlier token is valid for it.
  init() { key = SymmetricKey(size: .bits256) }

  private init(_ key: [UInt8]) { self.key = SymmetricKey(data: key) }

  /// The signer of a database. Stores a new random key in a database without one. If the store cannot write, the key is
  /// valid for this process only.
  /// - Throws: the store's errors of reading.
  static func load(_ rows: any OrderedDatabase) async throws -> TokenSigner {
    if let stored = try await rows.read(at: nil, { try TokenSigner.stored($0) }) {
      return TokenSigner(stored)
    }
    let new = TokenSigner()
    let bytes = new.key.withUnsafeBytes { Array($0) }
    do {
      let key = try await rows.execute(validating: nil) { view in
        if let stored = try TokenSigner.stored(view) { return stored }
        try new.store(in: view)
        return bytes
      }
      return TokenSigner(key.result)
    } catch { return new }
  }

  /// Whether the database has a key.
  static func isStored(_ view: any ReadView) throws -> Bool { try stored(view) != nil }

  /// Stores the key.
  func store(in view: any SequencedTransaction) throws {
    try view.set(FirestoreKeyLayout.tokenKey, key.withUnsafeBytes { Array($0) })
  }

  /// The stored key; nil if there is none.
  private static func stored(_ view: any ReadView) throws -> [UInt8]? {
    guard let row = try view.get(FirestoreKeyLayout.tokenKey), row.value.count == keyBytes else { return nil }
    return Array(row.value)
  }

  /// The code of a token's contents.
  func code(of contents: [UInt8], _ kind: Kind, for owner: TokenOwner) -> [UInt8] {
    let message = [kind.rawValue] + TokenSigner.framed(owner.bytes) + contents
    return Array(HMAC<SHA256>.authenticationCode(for: message, using: key).prefix(TokenSigner.codeBytes))
  }

  /// Whether a code is that of the contents. Takes the same time for every wrong code.
  func isValid(
    _ code: some Collection<UInt8>, of contents: [UInt8], _ kind: Kind, for owner: TokenOwner
  ) -> Bool {
    guard code.count == TokenSigner.codeBytes else { return false }
    let expected = self.code(of: contents, kind, for: owner)
    return zip(code, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }

  /// Bytes with their length in front, so that concatenations are unambiguous.
  static func framed(_ bytes: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(clamping: bytes.count).bigEndian) { Array($0) } + bytes
  }
}
