// The ids of added documents: made by the client, before any answer, and the ones the server then keeps.

import FirebaseFirestore
import Testing

/// The form of addDocument for callers that do not wait; in an async function the compiler would choose the other.
private func add(_ number: Int, to collection: CollectionReference) -> DocumentReference {
  collection.addDocument(data: ["n": number])
}

@Suite(.serialized, .timeLimit(.minutes(5))) struct AddedDocumentTests {
  @Test func addedDocumentsHaveIDsOfTheirOwnBeforeTheServerAnswers() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let collection = client.collection("added")
      var ids: Set<String> = []
      for number in 0..<100 {
        // Two ways to the same id: asking for a reference, and adding.
        ids.insert(collection.document().documentID)
        let added = add(number, to: collection)
        #expect(added.path == "added/\(added.documentID)")
        ids.insert(added.documentID)
      }
      #expect(ids.count == 200)
      #expect(ids.allSatisfy { $0.utf8.count == 20 })
      #expect(ids.allSatisfy { $0.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) } })
      // Twenty characters of 62 each, evenly: 4,000 of them miss one of the 62 once in 10^26 times.
      #expect(Set(ids.joined()).count == 62)

      try await deadline { try await client.waitForPendingWrites() }
      let kept = try await deadline {
        try await collection.getDocuments(source: .server).documents.map(\.documentID)
      }
      #expect(kept.count == 100 && ids.isSuperset(of: kept))
    }
  }
}
