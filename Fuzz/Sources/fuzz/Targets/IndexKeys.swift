// Index keys read from a damaged disk: nothing is read beyond its end, and what reads as a path is one.

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
      // A text may look like a numeric id, which has a form of its own.
      var again = IndexKeyDecoder(encoder.bytes)
      try require(again.path(direction) == path, "a path changes")
    }
  }
  var decoder = IndexKeyDecoder(bytes)
  _ = decoder.fieldPath()
}
