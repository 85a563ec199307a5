// The opaque token that identifies a transaction to its client.
//
//     02 | epoch of this process (8) | transaction (8) | project (4) | database (4) | code (16)
//
// The code authenticates the token for its owner and its database: see `TokenSigner`.
//
// Invariant: the engine can distinguish a token that it never issued to the caller from the token of an ended
// transaction.

import FirestoreModel

/// The parts of a transaction's token.
struct TransactionToken: Equatable {
  /// Distinguishes tokens of this process from those of an earlier one.
  var epoch: UInt64
  /// The transaction's id.
  var id: UInt64
  /// Hashes of the database's project and id, by which tokens of other databases are recognized.
  var project: UInt32
  var database: UInt32

  private static let format: UInt8 = 2
  private static let contentBytes = 25
  private static let bytes = contentBytes + TokenSigner.codeBytes

  init(epoch: UInt64, id: UInt64, in name: DatabaseName) {
    self.epoch = epoch
    self.id = id
    project = TransactionToken.hash(name.project)
    database = TransactionToken.hash(name.database)
  }

  /// Decodes a token without verifying it; nil if it is malformed.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == TransactionToken.bytes, bytes[0] == TransactionToken.format else { return nil }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    epoch = number(1..<9)
    id = number(9..<17)
    project = UInt32(truncatingIfNeeded: number(17..<21))
    database = UInt32(truncatingIfNeeded: number(21..<25))
  }

  /// Whether a token was issued to an owner, by this process or an earlier one.
  static func isAuthentic(_ bytes: [UInt8], _ signer: TokenSigner, for owner: TokenOwner) -> Bool {
    guard bytes.count == TransactionToken.bytes else { return false }
    return signer.isValid(
      bytes[contentBytes...], of: Array(bytes[..<contentBytes]), .transaction, for: owner)
  }

  /// The token's bytes.
  func bytes(_ signer: TokenSigner, for owner: TokenOwner) -> [UInt8] {
    var bytes = [TransactionToken.format]
    bytes.reserveCapacity(TransactionToken.bytes)
    func append<T: FixedWidthInteger>(_ value: T) {
      withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }
    append(epoch)
    append(id)
    append(project)
    append(database)
    return bytes + signer.code(of: bytes, .transaction, for: owner)
  }

  private static func hash(_ text: String) -> UInt32 {
    var hash = FNV1a()
    hash.add(text.utf8)
    return UInt32(truncatingIfNeeded: hash.value)
  }
}
