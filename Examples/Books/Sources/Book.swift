// A book, as the app and the database represent it. Nested types, enumerations and optional values become
// fields.

import FirebaseFirestore
import Foundation

/// A book on the shelf.
struct Book: Codable {
  /// The languages of books. The document contains the raw value.
  enum Language: String, Codable { case english, french, german }

  /// A person. It becomes a map in the document.
  struct Author: Codable, Hashable {
    var name: String
    var born: Int?
  }

  /// A reader's rating. It becomes a map in an array of the document.
  struct Rating: Codable, Hashable {
    var reader: String
    var stars: Int
  }

  /// The document's ID, which is set when the document is read.
  @DocumentID var id: String?
  var title: String
  var author: Author
  var language = Language.english
  var pages: Int
  var ratings: [Rating] = []
  /// The reader who has borrowed the book. Books that nobody has borrowed contain null, so that a query finds
  /// them.
  @ExplicitNull var borrower: String?
  /// The time at which the book was added, which the server sets.
  @FirebaseFirestore.ServerTimestamp var added: Date?

  /// One field of the document has a different name than its property.
  enum CodingKeys: String, CodingKey {
    case id, title, author, language, ratings, borrower, added
    case pages = "numberOfPages"
  }

  /// The average of the ratings; nil if there are no ratings.
  var stars: Double? {
    ratings.isEmpty ? nil : Double(ratings.map(\.stars).reduce(0, +)) / Double(ratings.count)
  }

  /// A description of the book on one line.
  var line: String {
    var text = "\(title) by \(author.name), \(pages) pages, \(language.rawValue)"
    if let stars { text += String(format: ", %.1f stars", stars) }
    if let borrower { text += ", lent to \(borrower)" }
    return text
  }
}
