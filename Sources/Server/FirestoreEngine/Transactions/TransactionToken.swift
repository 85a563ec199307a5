// The opaque token that names a transaction to its client.
//
//     01 | start of this process (8) | transaction (8) | project (4) | database (4) | check (8)
//
// Invariant: what this engine did not issue is told from what it issued and has ended.

import FirestoreModel

/// The parts of a transaction's token.
struct TransactionToken: Equatable {
  /// Tells tokens of this process from those of an earlier one.
  var epoch: UInt64
  /// The transaction's number.
  var id: UInt64
  /// Hashes of the database's name.
  var project: UInt32
  var database: UInt32

  init(epoch: UInt64, id: UInt64, in name: DatabaseName) {
    self.epoch = epoch
    self.id = id
    project = UInt32(truncatingIfNeeded: TransactionToken.hash(name.project.utf8))
    database = UInt32(truncatingIfNeeded: TransactionToken.hash(name.database.utf8))
  }

  /// Reads a token; nil if it was never issued by any process.
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

  private static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var fnv = FNV1a(seed: 0x4865_6172_7468)
    fnv.add(bytes)
    return fnv.hash
  }
}
