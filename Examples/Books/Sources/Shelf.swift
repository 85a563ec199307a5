// The shelf: reads and writes books in Cloud Firestore as values of the type `Book`.

import FirebaseFirestore
import Foundation
import Terminal

/// A shelf of books.
struct Shelf: Sendable {
  private let books: CollectionReference

  init(_ database: Firestore) {
    books = database.collection("books")
  }

  private func document(_ title: String) -> DocumentReference { books.document(title.lowercased()) }

  /// Adds a book, and returns at once. The write is in the cache, and is sent as soon as the server can be
  /// reached.
  func add(_ book: Book) throws {
    try document(book.title).setData(from: book) { error in
      if let error { Terminal.say("error: \(error.localizedDescription)") }
    }
  }

  /// Reads one book.
  ///
  /// - Returns: the book; nil if the shelf has no book with this title.
  func book(_ title: String) async throws -> Book? {
    try await document(title).getDocument(as: Book?.self)
  }

  /// Returns the books with more than a number of pages, longest first.
  func books(longerThan pages: Int) async throws -> [Book] {
    try await books.whereField("numberOfPages", isGreaterThan: pages).order(
      by: "numberOfPages", descending: true
    )
    .getDocuments().documents.map { try $0.data(as: Book.self) }
  }

  /// Returns the books that nobody has borrowed. `@ExplicitNull` stores null as their borrower.
  func available() async throws -> [Book] {
    try await books.whereField("borrower", isEqualTo: NSNull()).getDocuments().documents.map {
      try $0.data(as: Book.self)
    }
  }

  /// Sets the rating of a reader. A transaction decodes the book and encodes it again, so that no concurrent
  /// rating is lost.
  ///
  /// - Returns: the changed book; nil if the shelf has no book with this title.
  func rate(_ title: String, _ rating: Book.Rating) async throws -> Book? {
    let document = document(title)
    let changed = try await document.firestore.runTransaction { transaction, failure in
      do {
        guard var book = try transaction.getDocument(document).data(as: Book?.self) else { return nil }
        book.ratings.removeAll { $0.reader == rating.reader }
        book.ratings.append(rating)
        try transaction.setData(from: book, forDocument: document)
        return book
      } catch {
        failure?.pointee = error as NSError
        return nil
      }
    }
    return changed as? Book
  }

  /// Lends a book, or returns it if the borrower is nil. Only the field `borrower` of the encoded value is
  /// written.
  func lend(_ book: Book, to borrower: String?) throws {
    var book = book
    book.borrower = borrower
    try document(book.title).setData(from: book, mergeFields: ["borrower"])
  }

  /// Returns a stream with one line for each change, beginning with the current books.
  func changes() -> AsyncThrowingStream<String, any Error> {
    AsyncThrowingStream { continuation in
      let task = Task {
        do {
          for try await snapshot in books.order(by: "title").snapshots {
            for change in snapshot.documentChanges {
              let book = try change.document.data(as: Book.self)
              switch change.type {
              case .added: continuation.yield("+ \(book.line)")
              case .modified: continuation.yield("~ \(book.line)")
              case .removed: continuation.yield("- \(book.line)")
              }
            }
          }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}
