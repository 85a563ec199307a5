// Encodes values for index entries.
//
// A string is truncated at 1,500 bytes. Within a container, bytes after a truncated string would sort before
// the removed part. Therefore the complete container encoding is truncated instead, at a length below which
// no string can be truncated.
//
// Invariant: entries sort by value, except that different values whose encodings reach `truncationLength` may
// have equal bytes; these are adjacent.

import FirestoreModel
import OrderedStore

/// Encodes values in index entries, and finds their ends.
enum IndexValue {
  /// Different values may share an encoding of this length or more.
  static let truncationLength = Limits.indexedValueBytes

  /// The bytes of a value in an index entry.
  static func encode(_ value: Value) -> [UInt8] {
    var bytes = IndexKeyEncoder.encode(value)
    if value.kind == .array || value.kind == .map, bytes.count > truncationLength {
      bytes.removeLast(bytes.count - truncationLength)
    }
    return bytes
  }

  /// Whether the encoding identifies the value.
  static func isExact(_ value: Value) -> Bool {
    var encoder = IndexKeyEncoder()
    encoder.append(value)
    return encoder.isExact && encoder.bytes.count < truncationLength
  }

  /// The end offset of the value that starts at an offset of an entry's key; nil if there is none.
  static func end(in key: Key, from start: Int) -> Int? {
    var decoder = IndexKeyDecoder(key, from: start)
    let isComplete = decoder.skipValue()
    guard start < key.count, containers.contains(key[start]) else {
      return isComplete ? decoder.position : nil
    }
    // A truncated container ends at the truncation length.
    if isComplete, decoder.position <= start + truncationLength { return decoder.position }
    return key.count > start + truncationLength ? start + truncationLength : nil
  }

  /// The first bytes of the encodings of arrays and maps.
  private static let containers = [
    IndexBounds.start(of: .array).first ?? 0, IndexBounds.start(of: .map).first ?? 0,
  ]
}
