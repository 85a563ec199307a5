// Compiles the program of README.md. Only `@main` is missing, which a test target cannot have.

import FirebaseCore
import FirebaseDatabase

struct Notes {
  static func main() async throws {
    let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
    options.projectID = "demo-hearth"
    FirebaseApp.configure(options: options)
    let database = Database.database()
    database.useEmulator(withHost: "127.0.0.1", port: 9000)

    let note = database.reference(withPath: "notes/first")
    try await note.setValue(["text": "Hello", "at": ServerValue.timestamp()])
    print(try await note.getData())
  }
}
