// A book, as the app and the database share it: nested types, enumerations and optional values become fields.

import FirebaseFirestore
import Foundation

/// A book of the shelf.
struct Book: Codable {
  /// The languages that the shelf knows; the document has the raw value.
  enum Language: String, Codable { case english, french, german }

  /// A person, which is a map in the document.
  struct Author: Codable, Hashable {
    var name: String
    var born: Int?
  }

  /// A reader's rating; the array of the document has one map for each.
  struct Rating: Codable, Hashable {
    var reader: String
    var stars: Int
  }

  /// The document's name, set when the document is read.
  @DocumentID var id: String?
  var title: String
  var author: Author
  var language = Language.english
  var pages: Int
  var ratings: [Rating] = []
  /// Absent books have null, so that a query finds them.
  @ExplicitNull var borrower: String?
  /// Set by the server when the book is added.
  @FirebaseFirestore.ServerTimestamp var added: Date?

  /// The property names of the document differ for one field.
  enum CodingKeys: String, CodingKey {
    case id, title, author, language, ratings, borrower, added
    case pages = "numberOfPages"
  }

  /// The mean of the ratings; nil if there is none.
  var stars: Double? {
    ratings.isEmpty ? nil : Double(ratings.map(\.stars).reduce(0, +)) / Double(ratings.count)
  }

  /// The book as a line of the shelf.
  var line: String {
    var text = "\(title) by \(author.name), \(pages) pages, \(language.rawValue)"
    if let stars { text += String(format: ", %.1f stars", stars) }
    if let borrower { text += ", lent to \(borrower)" }
    return text
  }
}
