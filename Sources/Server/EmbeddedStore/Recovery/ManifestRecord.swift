// A manifest record describes one change of RocksDB's files. It is parsed only up to the fields that name the
// needed write-ahead logs.
//
// A record is a sequence of fields, each a tag and a value. Numbers are varints; strings have a length
// prefix. The fields come in this order, with their tags in parentheses:
//   - strings: the database identity (8193) and the name of the key order (1);
//   - numbers: the log number (2), the last sequence number (4), and others that are skipped (3, 9, 10, 203);
//   - files and their properties, which are not read.
// Logs with a number below the log number are not needed, because all their rows are in tables.

/// The log number and sequence number of one manifest record.
struct ManifestRecord {
  /// The number of the oldest log that is needed after this record; nil if the record does not change it.
  private(set) var log: UInt64?
  /// The last sequence number assigned before the record was written; nil if the record does not contain it.
  private(set) var sequence: UInt64?

  /// Reads the first bytes of a record, which may be damaged.
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

  /// Removes and returns a varint; nil if there is none.
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
