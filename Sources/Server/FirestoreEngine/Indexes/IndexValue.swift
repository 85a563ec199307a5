// Encodes values for index entries.
//
// A string is truncated at 1,500 bytes. In an array or map, the elements after a truncated string would take
// the place of its removed part and falsify the order. Therefore the encoding of an array or map is cut off
// at `truncationLength` bytes. No string inside can be truncated before that offset, so the remaining bytes
// are those of the complete value.
//
// Invariant: entries sort by value. The only exceptions are different values whose encodings reach
// `truncationLength`. They may have equal bytes, and then their entries are adjacent.

import FirestoreModel
import OrderedStore

/// Encodes values for index entries, and finds the end of a value in an entry's key.
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

  /// Whether no other value has the same encoding.
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
