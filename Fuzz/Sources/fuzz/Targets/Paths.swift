// Fuzz target: names and paths of both databases. An accepted path is written again unchanged, or in canonical
// form.

import FirestoreModel
import RealtimeModel

func fuzzPaths(_ input: UnsafeRawBufferPointer) throws {
  let text = String(decoding: input, as: UTF8.self)
  let root = "projects/p/databases/(default)/documents/"
  for candidate in [text, root + text] {
    if let name = try? DocumentName(parsing: candidate) {
      try require(name.description.hasSameUTF8(as: candidate), "a document's name changes")
    }
    if let name = try? ParentName(parsing: candidate) {
      try require(name.description.hasSameUTF8(as: candidate), "a parent's name changes")
    }
  }
  if let name = try? DatabaseName(parsing: text) {
    try require(name.description.hasSameUTF8(as: text), "a database's name changes")
  }
  if let path = try? FirestoreModel.FieldPath(parsing: text) {
    let canonical = path.description
    guard let again = try? FirestoreModel.FieldPath(parsing: canonical) else {
      // Quoting may make a path longer than the limit.
      try require(canonical.utf8.count > Limits.fieldPathBytes, "a canonical field path is not read")
      return
    }
    try require(again == path, "a field path changes")
  }
  _ = try? [StructuredQuery.Order](parsing: text)
  if let path = try? Path(validating: text, allowingPriority: true) {
    let again = try require(
      try? Path(validating: path.description, allowingPriority: true), "a path is not read again")
    try require(again == path, "a path changes")
  }
}
