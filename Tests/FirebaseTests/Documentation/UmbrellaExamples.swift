// The example of Firebase's documentation, compiled. DocumentationTests compares it with the catalogue.

import Firebase

private func useBothDatabases() async throws {
  let documents = Firestore.firestore()
  let tree = Database.database()
  try await documents.collection("orders").document("1").setData(["total": 12])
  try await tree.reference(withPath: "orders/1/total").setValue(12)
}
