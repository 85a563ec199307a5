// Compiles the example in the documentation of the module `Firebase`. DocumentationTests checks that the DocC catalogue
// contains the same code.

import Firebase

private func useBothDatabases() async throws {
  let documents = Firestore.firestore()
  let tree = Database.database()
  try await documents.collection("orders").document("1").setData(["total": 12])
  try await tree.reference(withPath: "orders/1/total").setValue(12)
}
