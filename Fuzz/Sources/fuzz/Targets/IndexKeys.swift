// Fuzz target: index keys from a damaged disk. Nothing is read beyond the end of a key, and a decoded path is
// valid.

import FirestoreModel

func fuzzIndexKeys(_ input: UnsafeRawBufferPointer) throws {
  let bytes = Array(input)
  for direction in [StructuredQuery.Direction.ascending, .descending] {
    var decoder = IndexKeyDecoder(bytes)
    while decoder.skipValue(direction) {
      try require(decoder.position <= bytes.count, "a value reaches beyond its key")
      if decoder.isAtEnd { break }
    }
    decoder = IndexKeyDecoder(bytes)
    if let path = decoder.path(direction) {
      var encoder = IndexKeyEncoder()
      encoder.append(path, direction)
      // A string may look like a numeric ID, which has its own form.
      var again = IndexKeyDecoder(encoder.bytes)
      try require(again.path(direction) == path, "a path changes")
    }
  }
  var decoder = IndexKeyDecoder(bytes)
  _ = decoder.fieldPath()
}
