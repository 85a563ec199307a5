// The beginning of a record of RocksDB's manifest, as far as it is of interest here: which write-ahead logs are needed.
//
// A record is a change of the store's files: fields one after the other, each a tag and a value, numbers as varints. Texts,
// which have their length before them, come first (8193: the database's identity, 1: the order of its keys), then numbers:
// that of a log (2: what is in logs of lower numbers is in tables), the highest sequence number so far (4), and others that
// do not matter here (3, 9, 10, 203). Files and what belongs to them follow.

/// What one record says.
struct ManifestRecord {
  /// The number of the oldest log that is needed from then on; nil if the record does not change it.
  private(set) var log: UInt64?
  /// The highest sequence number that was given out before the record was written; nil if it does not say.
  private(set) var sequence: UInt64?

  /// Reads a record by its first bytes, which may be those of anything.
  init(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while let tag = ManifestRecord.number(&rest) {
      switch tag {
      case 1, 8193:
        guard let length = ManifestRecord.number(&rest), length <= UInt64(rest.count) else { return }
        rest = rest.dropFirst(Int(length))
      case 2: log = ManifestRecord.number(&rest)
      case 4: sequence = ManifestRecord.number(&rest)
      case 3, 9, 10, 203: _ = ManifestRecord.number(&rest)
      default: return
      }
    }
  }

  /// Takes a varint; nil if there is none.
  private static func number(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while shift < 64, let byte = bytes.popFirst() {
      value |= UInt64(byte & 127) << shift
      if byte < 128 { return value }
      shift += 7
    }
    return nil
  }
}
