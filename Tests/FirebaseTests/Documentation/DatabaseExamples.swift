// The examples of FirebaseDatabase's documentation, compiled. DocumentationTests checks that the DocC
// catalogue contains the same code.

import FirebaseCore
import FirebaseDatabase
import Foundation

private func openDatabase() -> DatabaseReference {
  let database = Database.database()
  database.useEmulator(withHost: "127.0.0.1", port: 9000)
  let stock = database.reference(withPath: "shop/tea/stock")
  return stock
}

private func write(_ database: Database, _ stock: DatabaseReference) async throws {
  try await stock.setValue(12)
  try await database.reference(withPath: "shop/tea").updateChildValues([
    "name": "Assam", "changed": ServerValue.timestamp(),
  ])
}

private func increment(_ stock: DatabaseReference) async throws -> DataSnapshot? {
  let (committed, snapshot) = try await stock.runTransactionBlock { data in
    data.value = (data.value as? Int ?? 0) + 1
    return .success(withValue: data)
  }
  return committed ? snapshot : nil
}

private func readOnce(_ stock: DatabaseReference) async throws -> Int {
  let snapshot = try await stock.getData()
  let count = snapshot.value as? Int ?? 0
  return count
}

private func observe(_ stock: DatabaseReference) {
  let handle = stock.observe(.value) { snapshot in
    print(snapshot.key, snapshot.value ?? "none")
  }
  stock.removeObserver(withHandle: handle)
}

private func follow(_ stock: DatabaseReference) async throws {
  for try await snapshot in stock.values() {
    print(snapshot.value ?? "none")
  }
}

private func queryNewest(_ database: Database) async throws -> DataSnapshot {
  let newest = database.reference(withPath: "orders").queryOrdered(byChild: "placed").queryLimited(toLast: 10)
  let orders = try await newest.getData()
  return orders
}

private func presence(_ database: Database) async throws {
  let presence = database.reference(withPath: "presence/alice")
  try await presence.onDisconnectRemoveValue()
  try await presence.setValue(true)
}

private func enablePersistence() {
  let database = Database.database()
  database.isPersistenceEnabled = true
  database.persistenceCacheSizeBytes = 50 << 20
  database.persistenceErrorHandler = { error in
    print("cache: \(error.localizedDescription)")
  }
}

private func keepSynced(_ database: Database) {
  let scores = database.reference(withPath: "scores")
  scores.keepSynced(true)
}

private func showConnection(_ database: Database) async throws {
  let connected = database.reference(withPath: ".info/connected")
  for try await state in connected.values() {
    print(state.value as? Bool == true ? "online" : "offline")
  }
}

private func testAgainstServer() async throws {
  let database = Database.database(url: "http://127.0.0.1:9000?ns=test-\(UUID().uuidString)")
  try await database.reference(withPath: "stock").setValue(12)
  let snapshot = try await database.reference(withPath: "stock").getData()
  _ = snapshot
}
