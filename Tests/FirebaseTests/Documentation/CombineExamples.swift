// Compiles the examples of FirebaseFirestoreCombineSwift's documentation.

import FirebaseFirestore
import FirebaseFirestoreCombineSwift

#if canImport(Combine)
  import Combine
#else
  import OpenCombine
#endif

private func follow(_ books: CollectionReference) -> AnyCancellable {
  let titles = books.order(by: "title").snapshotPublisher()
    .map { $0.documents.compactMap { $0.get("title") as? String } }
    .sink(
      receiveCompletion: { print("ended:", $0) },
      receiveValue: { print($0) })
  return titles
}

private func add(_ books: CollectionReference) -> AnyCancellable {
  let added = books.addDocument(data: ["title": "Emma", "pages": 474])
    .flatMap { $0.getDocument(source: .cache) }
    .sink(
      receiveCompletion: { if case .failure(let error) = $0 { print("rejected:", error) } },
      receiveValue: { print($0.documentID) })
  return added
}

private func count(_ firestore: Firestore, _ book: DocumentReference) -> Future<Int, any Error> {
  let pages = firestore.runTransaction { transaction -> Int in
    let pages = try transaction.getDocument(book).get("pages") as? Int ?? 0
    transaction.updateData(["pages": pages + 1], forDocument: book)
    return pages + 1
  }
  return pages
}

private func write(_ book: DocumentReference, _ fields: [String: Any]) {
  book.setData(fields, completion: nil)
}
