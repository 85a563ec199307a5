// Fuzz target: Firestore's requests. Hearth's codec accepts only input that the generated code accepts, and writes
// it again as the same message. A decoded request can be validated, matched and applied.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import SwiftProtobuf

func fuzzProtobuf(_ input: UnsafeRawBufferPointer) throws {
  let bytes = Array(input)
  if let value = try? DocumentCodec.decodeValue(bytes) {
    try require(
      (try? Google_Firestore_V1_Value(serializedBytes: bytes)) != nil, "only our codec reads a value")
    try require((try? DocumentCodec.decodeValue(DocumentCodec.encode(value))) == value, "a value changes")
  }
  if let document = try? DocumentCodec.decode(bytes) {
    try require(
      (try? Google_Firestore_V1_Document(serializedBytes: bytes)) != nil, "only our codec reads a document")
    try require((try? DocumentCodec.decode(DocumentCodec.encode(document))) == document, "a document changes")
    _ = try? DocumentValidation.validate(document.fields, of: document.name)
  }
  if let request = try? CommitRequest(decoding: input) {
    // The generated code may still reject the input: it also reads fields that Hearth's codec skips.
    for write in request.writes where (try? write.validate(in: write.document.database)) != nil {
      _ = write.apply(to: ["a": 1], requestTime: .epoch)
    }
  }
  _ = try? WriteStreamRequest(decoding: input)
  if let message = try? Google_Firestore_V1_StructuredQuery(serializedBytes: bytes),
    let structured = try? StructuredQuery(message),
    let query = try? NormalizedQuery(
      Query(parent: ParentName(rootOf: DatabaseName(project: "p")), structured)),
    let name = DocumentName(database: DatabaseName(project: "p"), path: "c/d")
  {
    _ = query.matches(name, ["a": 1, "b": ["c": "x"]])
    _ = query.canonicalForm
  }
  _ = try? Google_Firestore_V1_ListenRequest(serializedBytes: bytes)
}
