// Compiles the examples of FirebaseFirestore's documentation. DocumentationTests checks that the DocC
// catalogue contains the same code.

import FirebaseCore
import FirebaseFirestore
import Foundation

private struct Book: Codable {
  var title: String
  var pages: Int
}

private func openFirestore() -> DocumentReference {
  let firestore = Firestore.firestore()
  firestore.useEmulator(withHost: "127.0.0.1", port: 8080)
  let books = firestore.collection("books")
  let book = books.document("emma")
  return book
}

private func write(_ book: DocumentReference) async throws {
  try await book.setData(["title": "Emma", "pages": 474])
  try await book.updateData(["pages": 480, "changed": FieldValue.serverTimestamp()])
  try await book.delete()
}

private func writeBatch(_ firestore: Firestore, _ books: CollectionReference, _ book: DocumentReference)
  async throws
{
  let batch = firestore.batch()
  batch.setData(["title": "Persuasion"], forDocument: books.document("persuasion"))
  batch.updateData(["pages": FieldValue.increment(Int64(6))], forDocument: book)
  try await batch.commit()
}

private func countPages(_ firestore: Firestore, _ book: DocumentReference) async throws {
  _ = try await firestore.runTransaction { transaction, error in
    do {
      let pages = try transaction.getDocument(book).get("pages") as? Int ?? 0
      transaction.updateData(["pages": pages + 1], forDocument: book)
    } catch let failure as NSError {
      error?.pointee = failure
    }
    return nil
  }
}

private func useCodable(_ books: CollectionReference, _ book: DocumentReference) async throws {
  let read = try await book.getDocument(as: Book.self)
  try books.addDocument(from: Book(title: read.title, pages: read.pages))
}

private func queryLong(_ books: CollectionReference) async throws -> [String] {
  let long = books.whereField("pages", isGreaterThan: 400).order(by: "pages", descending: true).limit(to: 10)
  let snapshot = try await long.getDocuments()
  let titles = snapshot.documents.compactMap { $0.get("title") as? String }
  return titles
}

private func listen(_ long: Query) {
  let listener = long.addSnapshotListener { snapshot, error in
    for change in snapshot?.documentChanges ?? [] { print(change.type, change.document.documentID) }
  }
  listener.remove()
}

private func followOffline(_ book: DocumentReference) {
  let reading = book.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
    guard let snapshot else { return }
    print(snapshot.metadata.isFromCache, snapshot.metadata.hasPendingWrites)
  }
  reading.remove()
}

private func chooseCache(_ firestore: Firestore) {
  let settings = firestore.settings
  settings.cacheSettings = PersistentCacheSettings(sizeBytes: 20_971_520)
  firestore.settings = settings
}

private func count(_ long: Query) async throws -> NSNumber {
  let count = try await long.count.getAggregation(source: .server).count
  return count
}
