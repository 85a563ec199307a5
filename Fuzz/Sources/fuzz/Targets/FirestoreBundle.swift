// Fuzz target: bundles of FirebaseFirestore. Parsing a bundle in pieces of any size gives the same result, and a cache
// that has loaded a bundle answers the bundle's queries.

import FirestoreModel

@testable import FirebaseFirestore

private let database = DatabaseName(project: "p")

/// The first byte is the size of the pieces; the rest is a bundle.
func fuzzFirestoreBundle(_ input: UnsafeRawBufferPointer) throws {
  guard let first = input.first else { return }
  let bytes = Array(input.dropFirst())
  let complete = read(bytes, pieces: max(1, bytes.count))
  let inPieces = read(bytes, pieces: Int(first) + 1)
  switch (complete, inPieces) {
  case (.success(let one), .success(let other)): try require(one == other, "pieces change the bundle")
  case (.failure(let one), .failure(let other)):
    try require(one.code == other.code, "pieces change the error")
  default: throw PropertyFailure(description: "pieces decide whether a bundle is accepted")
  }
  guard case .success(let bundle) = complete else { return }
  var store = LocalStore(persistence: MemoryPersistence(isEager: false))
  _ = try store.apply(bundle)
  for query in bundle.queries {
    for document in try store.execute(query.clientQuery, usePreviousResults: true).documents {
      try require(bundle.documents[document.name]?.fields == document.fields, "a cached document differs")
    }
  }
}

private func read(_ bytes: [UInt8], pieces size: Int) -> Result<Bundle, FirestoreError> {
  var loader = BundleLoader(database: database)
  do throws(FirestoreError) {
    for start in stride(from: 0, to: bytes.count, by: size) {
      loader.append(bytes[start..<min(start + size, bytes.count)])
      while try loader.step() {}
    }
    return .success(try loader.finish())
  } catch {
    return .failure(error)
  }
}
