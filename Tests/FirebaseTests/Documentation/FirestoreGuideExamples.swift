// Compiles the examples of FirebaseFirestore's guides. DocumentationTests checks that the guides contain the
// same code.

import FirebaseCore
import FirebaseFirestore
import FirebaseSharedSwift
import Foundation

// MARK: FirstApp

private func configure() -> Firestore {
  let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
  options.projectID = "demo-tasks"
  FirebaseApp.configure(options: options)
  let firestore = Firestore.firestore()
  firestore.useEmulator(withHost: "127.0.0.1", port: 8080)
  return firestore
}

private func firstApp(_ firestore: Firestore) async throws {
  let tasks = firestore.collection("tasks")
  let milk = try await tasks.addDocument(data: ["title": "Buy milk", "isDone": false, "created": Timestamp()])
  try await milk.updateData(["isDone": true])
  let stored = try await milk.getDocument()
  print(stored.get("title") as? String ?? "no such task")

  do {
    try await tasks.document("none").updateData(["isDone": true])
  } catch FirestoreErrorCode.notFound {
    print("the task was deleted")
  }

  let open = tasks.whereField("isDone", isEqualTo: false).order(by: "created")
  for try await snapshot in open.snapshots {
    for change in snapshot.documentChanges where change.type == .added {
      print("new:", change.document.get("title") as? String ?? "")
    }
  }
}

private func firstAppWithoutWaiting(_ milk: DocumentReference) {
  milk.updateData(["title": "Buy oat milk"]) { error in
    if let error { print("rejected:", error.localizedDescription) }
  }
}

// MARK: Offline

private func readOffline(_ firestore: Firestore) async throws {
  let lists = firestore.collection("lists")
  let newest = try await lists.document("groceries").getDocument(source: .server)
  let cached = try await lists.whereField("owner", isEqualTo: "ann").getDocuments(source: .cache)
  print(newest.exists, cached.count)

  let listener = lists.addSnapshotListener(includeMetadataChanges: true) { snapshot, error in
    guard let snapshot else { return print(error?.localizedDescription ?? "") }
    print(snapshot.metadata.isFromCache ? "cached" : "current")
    for document in snapshot.documents where document.metadata.hasPendingWrites {
      print("waiting to be sent:", document.documentID)
    }
  }
  listener.remove()

  let groceries = try await lists.document("groceries").getDocument(source: .cache)
  let changed = groceries.get("changed", serverTimestampBehavior: .estimate) as? Timestamp
  print(changed ?? "never")
}

private func writeOffline(_ firestore: Firestore, _ lists: CollectionReference) async throws {
  lists.document("groceries").setData(["owner": "ann", "changed": FieldValue.serverTimestamp()]) { error in
    if let error { print("not stored:", error.localizedDescription) }
  }
  try await firestore.waitForPendingWrites()
}

private func observeCache(_ firestore: Firestore) {
  firestore.persistenceErrorHandler = { error in
    print("The cache failed:", error.localizedDescription)
  }
}

private func chooseCache(_ firestore: Firestore) async throws {
  let settings = firestore.settings
  settings.cacheSettings = PersistentCacheSettings(sizeBytes: 20_971_520)
  firestore.settings = settings

  try await firestore.terminate()
  try await firestore.clearPersistence()
}

// MARK: Codable

private enum CodableGuide {
  struct Book: Codable {
    @DocumentID var id: String?
    @ServerTimestamp var added: Date?
    @ExplicitNull var borrower: String?
    var title: String
    var pages: Int
    var author: Author

    struct Author: Codable {
      var name: String
      var born: Int?
    }
  }

  static func useCodable(_ firestore: Firestore) async throws {
    let books = firestore.collection("books")
    let emma = Book(title: "Emma", pages: 474, author: Book.Author(name: "Jane Austen", born: 1775))
    try books.document("emma").setData(from: emma)
    let added = try books.addDocument(from: emma) { error in
      if let error { print("not stored:", error.localizedDescription) }
    }

    try added.setData(from: emma, mergeFields: ["pages", "author.name"])

    let read = try await books.document("emma").getDocument(as: Book.self)
    let long = try await books.whereField("pages", isGreaterThan: 400).getDocuments()
    let titles = try long.documents.map { try $0.data(as: Book.self).title }

    let missing = try await books.document("none").getDocument(as: Book?.self)
    print(read, titles, missing == nil)

    do {
      _ = try await books.document("odd").getDocument(as: Book.self)
    } catch DecodingError.typeMismatch(_, let context) {
      print(context.codingPath.map(\.stringValue).joined(separator: "."), context.debugDescription)
    } catch DecodingError.keyNotFound(let key, _) {
      print("the document lacks", key.stringValue)
    }

    let encoder = Firestore.Encoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.dateEncodingStrategy = .iso8601
    try books.document("emma").setData(from: emma, encoder: encoder)
  }
}

// MARK: Testing

private func makeTestClient() throws -> Firestore {
  let name = "test-\(UUID().uuidString)"
  let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
  options.projectID = "demo-\(name.lowercased())"
  FirebaseApp.configure(name: name, options: options)
  guard let app = FirebaseApp.app(name: name) else { throw CocoaError(.coderValueNotFound) }
  let firestore = Firestore.firestore(app: app)
  let settings = firestore.settings
  settings.cacheSettings = MemoryCacheSettings()
  firestore.settings = settings
  firestore.useEmulator(withHost: "127.0.0.1", port: 8080)
  return firestore
}

private func testing(_ firestore: Firestore) async throws {
  let counters = firestore.collection("counters")
  try await counters.document("visits").setData(["count": 1])
  for try await snapshot in counters.snapshots where !snapshot.metadata.isFromCache {
    print(snapshot.documents.map(\.documentID))
    break
  }

  try await firestore.disableNetwork()
  counters.document("visits").updateData(["count": FieldValue.increment(Int64(1))]) { _ in }
  try await firestore.enableNetwork()
  try await firestore.waitForPendingWrites()

  do {
    _ = try await firestore.document("private/notes").getDocument(source: .server)
  } catch FirestoreErrorCode.permissionDenied {
    print("denied as expected")
  }
}

// MARK: Moving

private func configureServer() {
  let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
  options.projectID = "my-project"
  FirebaseApp.configure(options: options)

  let firestore = Firestore.firestore()
  let settings = firestore.settings
  settings.host = "firestore.example.com:443"
  settings.isSSLEnabled = true
  firestore.settings = settings
}

private func predicates(_ firestore: Firestore) async throws -> Query {
  let predicates: [QueryPredicate] = [
    .where("isDone", isEqualTo: false), .order(by: "created"), .limit(to: 20),
  ]
  let query = firestore.collection("tasks").applying(predicates)

  try await firestore.waitForPendingWrites()
  return query
}
