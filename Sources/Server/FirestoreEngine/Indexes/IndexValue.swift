// Values as they stand in index entries.
//
// A text is cut at 1,500 bytes. Inside a container whatever follows a cut text would sort before what was cut off, so
// a container's encoding is cut as a whole, at a length at which no text inside can have been cut yet.
//
// Invariant: entries are in the order of their values, except that values whose encodings reach `truncationLength` may have
// equal bytes although they differ; those are neighbours.

import FirestoreModel
import OrderedStore

/// Encodes and finds values in index entries.
enum IndexValue {
  /// Encodings of this length and more may stand for several values.
  static let truncationLength = Limits.indexedValueBytes

  /// The bytes of a value in an index entry.
  static func encode(_ value: Value) -> [UInt8] {
    var bytes = IndexKeyEncoder.encode(value)
    if value.kind == .array || value.kind == .map, bytes.count > truncationLength {
      bytes.removeLast(bytes.count - truncationLength)
    }
    return bytes
  }

  /// Whether no other value has the same bytes in an index entry.
  static func isExact(_ value: Value) -> Bool {
    var encoder = IndexKeyEncoder()
    encoder.append(value)
    return encoder.isExact && encoder.bytes.count < truncationLength
  }

  /// Where the value that begins at a position of an entry's key ends; nil if there is none.
  static func end(in key: Key, from start: Int) -> Int? {
    var decoder = IndexKeyDecoder(key, from: start)
    let isWhole = decoder.skipValue()
    guard start < key.count, containers.contains(key[start]) else { return isWhole ? decoder.position : nil }
    // A cut container cannot end before the cut.
    if isWhole, decoder.position <= start + truncationLength { return decoder.position }
    return key.count > start + truncationLength ? start + truncationLength : nil
  }

  /// What the encodings of arrays and maps begin with.
  private static let containers = [
    IndexBounds.start(of: .array).first ?? 0, IndexBounds.start(of: .map).first ?? 0,
  ]
}
