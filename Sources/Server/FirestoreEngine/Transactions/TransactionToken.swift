// The opaque token that identifies a transaction to its client.
//
//     01 | epoch of this process (8) | transaction (8) | project (4) | database (4) | check (8)
//
// Invariant: the engine can distinguish a token that it never issued from the token of an ended transaction.

import FirestoreModel

/// The parts of a transaction's token.
struct TransactionToken: Equatable {
  /// Distinguishes tokens of this process from those of an earlier one.
  var epoch: UInt64
  /// The transaction's id.
  var id: UInt64
  /// Hashes of the database's project and id.
  var project: UInt32
  var database: UInt32

  init(epoch: UInt64, id: UInt64, in name: DatabaseName) {
    self.epoch = epoch
    self.id = id
    project = UInt32(truncatingIfNeeded: TransactionToken.hash(name.project.utf8))
    database = UInt32(truncatingIfNeeded: TransactionToken.hash(name.database.utf8))
  }

  /// Decodes a token; nil if no process issued it.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == 33, bytes[0] == 1 else { return nil }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    guard number(25..<33) == TransactionToken.hash(bytes[..<25]) else { return nil }
    epoch = number(1..<9)
    id = number(9..<17)
    project = UInt32(number(17..<21))
    database = UInt32(number(21..<25))
  }

  /// The token's bytes.
  var bytes: [UInt8] {
    var bytes: [UInt8] = [1]
    bytes.reserveCapacity(33)
    func append<T: FixedWidthInteger>(_ value: T) {
      withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }
    append(epoch)
    append(id)
    append(project)
    append(database)
    append(TransactionToken.hash(bytes))
    return bytes
  }

  /// FNV-1a with a fixed seed. It detects accidental corruption, but not forgery. A forged token is harmless,
  /// since tokens grant no rights.
  private static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ 0x4865_6172_7468
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash
  }
}
