// swift-format-ignore-file
// Programs of Firebase's guide about mapping simple types. The file compiles only if the SDK is
// source-compatible. The code is unchanged and contains force unwraps, so the formatter ignores it.
// Replacements for Apple's frameworks are marked.

import FirebaseFirestore
import Foundation

/// Replaces Combine's protocol.
protocol ObservableObject: AnyObject {}

/// Replaces Combine's property wrapper.
@propertyWrapper struct Published<Value> {
  var wrappedValue: Value
}

// In an app the view model is used only on the main actor, on which callbacks arrive.
extension MappingSimpleTypesViewModel: @unchecked Sendable {}

enum Plain {
  struct Book: Codable {
    var title: String
    var numberOfPages: Int
    var author: String
  }

  static func roundTrip() throws -> Book {
    do {
      let book = Book(
        title: "The Hitchhiker's Guide to the Galaxy",
        numberOfPages: 816,
        author: "Douglas Adams")
      let encoder = JSONEncoder()
      let data = try encoder.encode(book)
      let decoder = JSONDecoder()
      let decodedBook = try decoder.decode(Book.self, from: data)
      return decodedBook
    } catch {
      print("Error when trying to encode book: \(error)")
      throw error
    }
  }
}

struct Book: Codable {
  @DocumentID var id: String?
  var title: String
  var numberOfPages: Int
  var author: String
}

extension Book {
  static var empty: Book { Book(id: nil, title: "", numberOfPages: 0, author: "") }
}

struct CoverImages: Codable {
  var small: URL
  var medium: URL
  var large: URL
}

struct BookWithCoverImages: Codable {
  @DocumentID var id: String?
  var title: String
  var numberOfPages: Int
  var author: String
  var cover: CoverImages?
}

public struct BookWithGenre: Codable {
  @DocumentID var id: String?
  var title: String
  var numberOfPages: Int
  var author: String
  var genres: [String]
}

enum StringTags {
  struct Tag: Codable, Hashable {
    var title: String
    var color: String
  }

  struct BookWithTags: Codable {
    @DocumentID var id: String?
    var title: String
    var numberOfPages: Int
    var author: String
    var tags: [Tag]
  }
}

struct ProgrammingLanguage: Identifiable, Codable {
  @DocumentID var id: String?
  var name: String
  var year: Date
  var reasonWhyILoveThis: String = ""

  enum CodingKeys: String, CodingKey {
    case id
    case name = "language_name"
    case year
  }
}

struct Office: Codable {
  @DocumentID var id: String?
  var name: String
  var location: GeoPoint
}

enum Status: String, Codable {
  case draft
  case inReview = "in review"
  case approved
  case published
}

// The guide describes this type, but does not declare it.
struct Article: Codable {
  @DocumentID var id: String?
  var status: Status
  @ServerTimestamp var createdAt: Date?
  @ServerTimestamp var lastUpdatedAt: Timestamp?
  @ExplicitNull var reviewer: String?
}

struct CLLocationCoordinate2D {
  var latitude: Double
  var longitude: Double
}

func coordinate(of office: Office) -> CLLocationCoordinate2D {
  CLLocationCoordinate2D(
    latitude: office.location.latitude,
    longitude: office.location.longitude)
}

class MappingSimpleTypesViewModel: ObservableObject {
  @Published var book: Book = .empty
  @Published var errorMessage: String?

  private var db = Firestore.firestore()

  func fetchAndMap() {
    fetchBook(documentId: "hitchhiker")
  }

  func fetchAndMapNonExisting() {
    fetchBook(documentId: "does-not-exist")
  }

  func fetchAndTryMappingInvalidData() {
    fetchBook(documentId: "invalid-data")
  }

  private func fetchBook(documentId: String) {
    let docRef = db.collection("books").document(documentId)

    docRef.getDocument(as: Book.self) { result in
      switch result {
      case .success(let book):
        // A Book value was successfully initialized from the DocumentSnapshot.
        self.book = book
        self.errorMessage = nil
      case .failure(let error):
        // A Book value could not be initialized from the DocumentSnapshot.
        switch error {
        case DecodingError.typeMismatch(_, let context):
          self.errorMessage = "\(error.localizedDescription): \(context.debugDescription)"
        case DecodingError.valueNotFound(_, let context):
          self.errorMessage = "\(error.localizedDescription): \(context.debugDescription)"
        case DecodingError.keyNotFound(_, let context):
          self.errorMessage = "\(error.localizedDescription): \(context.debugDescription)"
        case DecodingError.dataCorrupted(let key):
          self.errorMessage = "\(error.localizedDescription): \(key)"
        default:
          self.errorMessage = "Error decoding document: \(error.localizedDescription)"
        }
      }
    }
  }

  // The guide's first form converts a dictionary manually.
  func fetchBookManually(documentId: String) {
    let docRef = db.collection("books").document(documentId)

    docRef.getDocument { document, error in
      if let error = error as NSError? {
        self.errorMessage = "Error getting document: \(error.localizedDescription)"
      } else {
        if let document = document {
          let id = document.documentID
          let data = document.data()
          let title = data?["title"] as? String ?? ""
          let numberOfPages = data?["numberOfPages"] as? Int ?? 0
          let author = data?["author"] as? String ?? ""
          self.book = Book(id: id, title: title, numberOfPages: numberOfPages, author: author)
        }
      }
    }
  }

  // The guide's second form uses data(as:).
  func fetchBookWithDataAs(documentId: String) {
    let docRef = db.collection("books").document(documentId)

    docRef.getDocument { document, error in
      if let error = error as NSError? {
        self.errorMessage = "Error getting document: \(error.localizedDescription)"
      } else {
        if let document = document {
          do {
            self.book = try document.data(as: Book.self)
          } catch {
            print(error)
          }
        }
      }
    }
  }

  func updateBook(book: Book) {
    if let id = book.id {
      let docRef = db.collection("books").document(id)
      do {
        try docRef.setData(from: book)
      } catch {
        print(error)
      }
    }
  }

  func addBook(book: Book) {
    let collectionRef = db.collection("books")
    do {
      let newDocReference = try collectionRef.addDocument(from: self.book)
      print("Book stored with new document reference: \(newDocReference)")
    } catch {
      print(error)
    }
  }
}
