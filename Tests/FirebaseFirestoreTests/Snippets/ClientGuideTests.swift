// swift-format-ignore-file
// Compiles the program of docs/guides/clients.md. It is unchanged, except that `@main` is missing, which a
// test target cannot have.

import Foundation
import Testing

// Guide begins
import FirebaseCore
import FirebaseFirestore

struct Tasks {
  static func main() async throws {
    let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
    options.projectID = "demo-hearth"
    FirebaseApp.configure(options: options)

    let db = Firestore.firestore()
    db.useEmulator(withHost: "127.0.0.1", port: 8080)

    let tasks = db.collection("tasks")
    let added = try await tasks.addDocument(data: ["title": "Buy milk", "done": false])
    try await added.updateData(["done": true])
    for document in try await tasks.whereField("done", isEqualTo: true).getDocuments().documents {
      print(document.documentID, document.data())
    }
  }
}
// Guide ends

@Suite("Client guide") struct ClientGuideTests {
  @Test("the guide's Swift program equals the one in this file")
  func swiftProgram() throws {
    let file = URL(fileURLWithPath: #filePath)
    let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let guide = try String(
      contentsOf: root.appendingPathComponent("docs/guides/clients.md"), encoding: .utf8)
    let printed = guide.components(separatedBy: "```swift\n").dropFirst()
      .compactMap { $0.components(separatedBy: "```").first }
      .filter { $0.contains("import FirebaseFirestore") }
    #expect(printed.count == 1)
    let source = try String(contentsOf: file, encoding: .utf8)
    let compiled = source.components(separatedBy: "// Guide begins\n").dropFirst().first?
      .components(separatedBy: "// Guide ends").first
    #expect(printed.first?.replacingOccurrences(of: "@main\n", with: "") == compiled)
  }
}
