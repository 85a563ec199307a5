// Compiles the examples of docs/guides/clients.md.

import FirebaseAuth
import FirebaseCore
import FirebaseDatabase

private func followTasks() async throws {
  let database = Database.database()
  database.useEmulator(withHost: "127.0.0.1", port: 9000)
  database.isPersistenceEnabled = true
  try await database.reference(withPath: "tasks").childByAutoId().setValue(["title": "Buy milk"])
  for try await snapshot in database.reference(withPath: "tasks").values() {
    print(snapshot.value ?? "nothing")
  }
}

private func signIn(_ options: FirebaseOptions) async throws {
  options.apiKey = "any-key"  // before `FirebaseApp.configure(options:)`; an emulator accepts any key
  Auth.auth().useEmulator(withHost: "127.0.0.1", port: 9099)
  let result = try await Auth.auth().signInAnonymously()
  print(result.user.uid)
}
