// Compiles the examples of FirebaseDatabase's documentation. DocumentationTests checks that the DocC
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

private func firstApp() async throws {
  let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
  options.projectID = "demo-hearth"
  FirebaseApp.configure(options: options)
  let database = Database.database()
  database.useEmulator(withHost: "127.0.0.1", port: 9000)

  let tasks = database.reference(withPath: "tasks")
  try await tasks.childByAutoId().setValue(["title": "Buy milk", "done": false])
  for try await snapshot in tasks.values() {
    print(snapshot.value ?? "nothing")
  }
}

private func registerPresence(_ database: Database) async throws {
  let connected = database.reference(withPath: ".info/connected")
  for try await state in connected.values() where state.value as? Bool == true {
    let session = database.reference(withPath: "users/alice/sessions").childByAutoId()
    let lastOnline = database.reference(withPath: "users/alice/lastOnline")
    try await session.onDisconnectRemoveValue()
    try await lastOnline.onDisconnectSetValue(ServerValue.timestamp())
    try await session.setValue(true)
  }
}

private func followPresence(_ database: Database) async throws {
  let sessions = database.reference(withPath: "users/alice/sessions")
  for try await state in sessions.values() {
    print(state.exists() ? "online" : "offline")
  }
}

private func serverTime(_ database: Database) async throws -> Int {
  let offset = try await database.reference(withPath: ".info/serverTimeOffset").getData()
  let now = Int(Date().timeIntervalSince1970 * 1_000) + (offset.value as? Int ?? 0)
  return now
}

private func addStar(_ database: Database) async throws {
  let post = database.reference(withPath: "posts/first")
  let (isCommitted, result) = try await post.runTransactionBlock { data in
    guard var value = data.value as? [String: Any] else { return .success(withValue: data) }
    value["stars"] = (value["stars"] as? Int ?? 0) + 1
    data.value = value
    return .success(withValue: data)
  }
  print(isCommitted, result.value ?? "none")
}

private func countStar(_ post: DatabaseReference) async throws {
  try await post.updateChildValues(["stars": ServerValue.increment(1), "changed": ServerValue.timestamp()])
}
