// Signs in to a production server, and writes as the user to both databases. docs/production.md contains this
// program. A test checks that the code is the same, and runs it.
//
//   Connect AUTH_HOST:PORT FIRESTORE_HOST:PORT DATABASE_HOST:PORT

import FirebaseAuth
import FirebaseCore
import FirebaseDatabase
import FirebaseFirestore
import Foundation

@main
struct Connect {
  static func main() async throws {
    let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
    options.projectID = "my-app"
    options.apiKey = "any-key"
    options.databaseURL = "https://\(CommandLine.arguments[3])?ns=my-app-default-rtdb"
    FirebaseApp.configure(options: options)
    if let url = URL(string: "https://\(CommandLine.arguments[1])") { Auth.auth().useServer(at: url) }
    let settings = Firestore.firestore().settings
    settings.host = "\(CommandLine.arguments[2])"
    Firestore.firestore().settings = settings

    let user = try await Auth.auth().signIn(withEmail: "ada@example.com", password: "correct horse").user
    try await Firestore.firestore().document("users/\(user.uid)").setData(["name": "Ada"])
    try await Database.database().reference(withPath: "users/\(user.uid)").setValue(["name": "Ada"])
    try await report(user.uid)
  }

  /// Prints the name that each database stores for the user, and whether it denies a write for another user.
  static func report(_ uid: String) async throws {
    let document = try await Firestore.firestore().document("users/\(uid)").getDocument()
    print("Firestore: \(document.get("name") as? String ?? "nothing")")
    let snapshot = try await Database.database().reference(withPath: "users/\(uid)").getData()
    print("Realtime Database: \(snapshot.childSnapshot(forPath: "name").value as? String ?? "nothing")")
    do {
      try await Firestore.firestore().document("users/someone-else").setData(["name": "Ada"])
    } catch FirestoreErrorCode.permissionDenied {
      print("Firestore: denied")
    }
    do {
      try await Database.database().reference(withPath: "users/someone-else").setValue(["name": "Ada"])
    } catch {
      print("Realtime Database: \((error as NSError).code == 1 ? "denied" : "\(error)")")
    }
  }
}
