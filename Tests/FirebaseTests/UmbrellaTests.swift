// Tests the umbrella module `Firebase`, which exports several products: the names that `import Firebase` provides. This
// file imports no product, so compiling it is most of the test.

import Firebase
import Foundation
import HearthServer
import Testing

/// An app with both databases, as in the guides.
private struct Shop {
  let app: FirebaseApp
  let documents: Firestore
  let tree: Database

  init?(name: String, documentsPort: Int, treePort: Int) {
    let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
    options.projectID = "demo-umbrella"
    FirebaseApp.configure(name: name, options: options)
    guard let app = FirebaseApp.app(name: name) else { return nil }
    self.app = app
    documents = Firestore.firestore(app: app)
    documents.useEmulator(withHost: "127.0.0.1", port: documentsPort)
    let settings: FirestoreSettings = documents.settings
    settings.dispatchQueue = DispatchQueue(label: "umbrella")
    settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings())
    documents.settings = settings
    tree = Database.database(app: app)
    tree.useEmulator(withHost: "127.0.0.1", port: treePort)
  }
}

private struct Item: Codable, Equatable, Sendable {
  @DocumentID var id: String?
  @ExplicitNull var note: String?
  var name: String
  var at: Timestamp
}

@Suite("Umbrella module", .timeLimit(.minutes(10))) struct UmbrellaTests {
  @Test("one import provides the app and both databases")
  func oneImport() async throws {
    let server = HearthServer(.forTesting())
    let ports = try await server.start().map(\.port)
    let shop = try #require(Shop(name: "umbrella", documentsPort: ports[0], treePort: ports[1]))

    let item = Item(id: nil, note: nil, name: "lamp", at: Timestamp(seconds: 5, nanoseconds: 0))
    let added: DocumentReference = try shop.documents.collection("items").addDocument(from: item)
    try await shop.documents.waitForPendingWrites()
    let found: QuerySnapshot = try await shop.documents.collection("items")
      .whereField("name", isEqualTo: "lamp").order(by: "at").limit(to: 5).getDocuments()
    let read = try #require(found.documents.first).data(as: Item.self)
    #expect(read.id == added.documentID && read.name == "lamp" && read.note == nil && read.at == item.at)
    do {
      try await shop.documents.document("items/none").updateData(["a": FieldValue.increment(Int64(1))])
      Issue.record("the update of a missing document was accepted")
    } catch FirestoreErrorCode.notFound {}

    let reference: DatabaseReference = shop.tree.reference().child("items/lamp")
    try await reference.setValue(["stars": ServerValue.increment(2)] as [String: Any])
    let snapshot: DataSnapshot = try await reference.getData()
    #expect((snapshot.value as? [String: Any])?["stars"] as? Int == 2)

    #expect(await shop.app.delete())
    await server.stop()
  }

  @Test("the types in the guides exist")
  func guideTypes() throws {
    let options = TransactionOptions()
    options.maxAttempts = 3
    #expect(options.maxAttempts == 3 && FirestoreCacheSizeUnlimited == -1)
    let observer: LoadBundleObserverHandle? = nil
    #expect(observer == nil)
    let encoded = try Firestore.Encoder().encode(["a": 1])
    #expect(encoded["a"] as? Int == 1)
    #expect(try Firestore.Decoder().decode([String: Int].self, from: encoded) == ["a": 1])
    let structure = try Database.Encoder().encode(["a": 1])
    #expect(try Database.Decoder().decode([String: Int].self, from: structure) == ["a": 1])
    let cause: any Error = FirestoreEncodingError.encodingIsNotSupported("x")
    #expect(cause is FirestoreEncodingError && !(cause is FirestoreDecodingError))
  }
}
