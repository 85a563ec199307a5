// Tests added documents: the client creates their IDs before the server responds, and the server stores them.

import FirebaseFirestore
import Testing

/// Calls addDocument without waiting. In an async function Swift selects the async overload.
private func add(_ number: Int, to collection: CollectionReference) -> DocumentReference {
  collection.addDocument(data: ["n": number])
}

@Suite("Added documents", .serialized, .timeLimit(.minutes(5))) struct AddedDocumentTests {
  @Test("added documents have unique ids before the server responds")
  func uniqueIDs() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let collection = client.collection("added")
      var ids: Set<String> = []
      for number in 0..<100 {
        // An empty reference and an added document both create an ID.
        ids.insert(collection.document().documentID)
        let added = add(number, to: collection)
        #expect(added.path == "added/\(added.documentID)")
        ids.insert(added.documentID)
      }
      #expect(ids.count == 200)
      #expect(ids.allSatisfy { $0.utf8.count == 20 })
      #expect(ids.allSatisfy { $0.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) } })
      // Each ID has 20 characters from an alphabet of 62. 200 IDs have 4,000 characters, which miss one of
      // the 62 with a probability of 10^-26.
      #expect(Set(ids.joined()).count == 62)

      try await deadline { try await client.waitForPendingWrites() }
      let stored = try await deadline {
        try await collection.getDocuments(source: .server).documents.map(\.documentID)
      }
      #expect(stored.count == 100 && ids.isSuperset(of: stored))
    }
  }
}
