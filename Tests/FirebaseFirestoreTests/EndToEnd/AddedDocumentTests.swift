// The ids of added documents: created by the client before any response, and stored by the server.

import FirebaseFirestore
import Testing

/// Calls addDocument without waiting; in an async function Swift selects the async overload.
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
        // Both an empty reference and an added document create an id.
        ids.insert(collection.document().documentID)
        let added = add(number, to: collection)
        #expect(added.path == "added/\(added.documentID)")
        ids.insert(added.documentID)
      }
      #expect(ids.count == 200)
      #expect(ids.allSatisfy { $0.utf8.count == 20 })
      #expect(ids.allSatisfy { $0.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) } })
      // Each id has 20 characters out of 62. The chance that 4,000 characters miss one of the 62 is 10^-26.
      #expect(Set(ids.joined()).count == 62)

      try await deadline { try await client.waitForPendingWrites() }
      let stored = try await deadline {
        try await collection.getDocuments(source: .server).documents.map(\.documentID)
      }
      #expect(stored.count == 100 && ids.isSuperset(of: stored))
    }
  }
}
