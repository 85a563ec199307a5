// Tests both databases with a signed-in user: rules receive the user of FirebaseAuth, and no user after the
// sign-out.

import Firebase
import Foundation
import HearthServer
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

private let documentRules = """
  rules_version = '2';
  service cloud.firestore {
    match /databases/{database}/documents {
      match /users/{uid} { allow read, write: if request.auth.uid == uid; }
      match /editors/{any=**} { allow read, write: if request.auth.token.role == 'editor'; }
    }
  }
  """

private let treeRules = """
  {"rules": {
    "users": {"$uid": {".read": "auth.uid === $uid", ".write": "auth.uid === $uid"}},
    "editors": {".write": "auth.token.role === 'editor'"}
  }}
  """

/// A server with rules for both databases, and an app that uses it.
private struct RulesFixture {
  let server: HearthServer
  let app: FirebaseApp
  let auth: Auth
  let documents: Firestore
  let tree: Database
  let authPort: Int
  let project: String

  init() async throws {
    setenv(
      "XDG_DATA_HOME", FileManager.default.temporaryDirectory.path + "/signed-in-\(UUID().uuidString)", 1)
    var configuration = HearthConfiguration.forTesting()
    configuration.auth = .init(port: 0)
    project = configuration.project
    server = HearthServer(configuration)
    try await server.start()
    let firestorePort = try #require(server.firestorePort)
    let databasePort = try #require(server.databasePort)
    authPort = try #require(server.authPort)

    let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
    options.projectID = project
    options.apiKey = "any-key"
    let name = "signed-in-\(UUID().uuidString)"
    FirebaseApp.configure(name: name, options: options)
    app = try #require(FirebaseApp.app(name: name))
    auth = Auth.auth(app: app)
    auth.useEmulator(withHost: "127.0.0.1", port: authPort)
    documents = Firestore.firestore(app: app)
    documents.useEmulator(withHost: "127.0.0.1", port: firestorePort)
    let settings = documents.settings
    settings.cacheSettings = MemoryCacheSettings()
    documents.settings = settings
    tree = Database.database(app: app)
    tree.useEmulator(withHost: "127.0.0.1", port: databasePort)

    let content = try JSONSerialization.data(withJSONObject: [
      "rules": ["files": [["name": "firestore.rules", "content": documentRules]]]
    ])
    try await send("PUT", firestorePort, "emulator/v1/projects/\(project):securityRules", content)
    try await send(
      "PUT", databasePort, ".settings/rules.json?ns=\(project)-default-rtdb", Data(treeRules.utf8))
  }

  /// Sends a request as an administrator.
  func send(_ method: String, _ port: Int, _ path: String, _ body: Data) async throws {
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)/\(path)")))
    request.httpMethod = method
    request.httpBody = body
    request.setValue("Bearer owner", forHTTPHeaderField: "Authorization")
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    let (data, response) = try await URLSession.shared.data(for: request)
    try #require(
      (response as? HTTPURLResponse)?.statusCode == 200, "\(path): \(String(decoding: data, as: UTF8.self))")
  }

  func close() async {
    _ = await app.delete()
    await server.stop()
  }

  /// Whether both databases accept a write.
  func mayWrite(_ path: String) async throws -> (documents: Bool, tree: Bool) {
    var (intoDocuments, intoTree) = (true, true)
    do { try await documents.document(path).setData(["a": 1]) } catch FirestoreErrorCode.permissionDenied {
      intoDocuments = false
    }
    do { try await tree.reference(withPath: path).setValue(1) } catch {
      // Code 1 is the permission error of the Realtime Database.
      guard (error as NSError).code == 1 else { throw error }
      intoTree = false
    }
    return (intoDocuments, intoTree)
  }
}

@Suite("Signed-in databases", .timeLimit(.minutes(2))) struct SignedInTests {
  @Test("both databases act as the signed-in user, and without a user after the sign-out")
  func users() async throws {
    let fixture = try await RulesFixture()
    #expect(try await fixture.mayWrite("users/lea") == (false, false))
    try await fixture.auth.signIn(withCustomToken: #"{"uid":"lea"}"#)
    #expect(try await fixture.mayWrite("users/lea") == (true, true))
    #expect(try await fixture.mayWrite("users/tom") == (false, false))
    try await fixture.auth.signIn(withCustomToken: #"{"uid":"tom"}"#)
    #expect(try await fixture.mayWrite("users/tom") == (true, true))
    #expect(try await fixture.mayWrite("users/lea") == (false, false))
    try fixture.auth.signOut()
    #expect(try await fixture.mayWrite("users/tom") == (false, false))
    await fixture.close()
  }

  @Test("after a restart, the first calls contain the token of the stored user")
  func restart() async throws {
    let fixture = try await RulesFixture()
    try await fixture.auth.signIn(withCustomToken: #"{"uid":"lea"}"#)
    #expect(try await fixture.mayWrite("users/lea") == (true, true))
    let (name, options, port) = (
      fixture.app.name, fixture.app.options, try #require(fixture.server.firestorePort)
    )
    _ = await fixture.app.delete()

    FirebaseApp.configure(name: name, options: options)
    let app = try #require(FirebaseApp.app(name: name))
    // `Auth.auth(app:)` has not been called. The first call of Firestore starts FirebaseAuth.
    let documents = Firestore.firestore(app: app)
    documents.useEmulator(withHost: "127.0.0.1", port: port)
    #expect(try await documents.document("users/lea").getDocument(source: .server).exists)
    try await documents.document("users/lea").setData(["a": 2])
    _ = await app.delete()
    await fixture.server.stop()
  }

  @Test("after a refresh, rules receive the claims of the new token")
  func claims() async throws {
    let fixture = try await RulesFixture()
    let user = try await fixture.auth.signIn(withCustomToken: #"{"uid":"lea"}"#).user
    #expect(try await fixture.mayWrite("editors/a") == (false, false))
    let body = try JSONSerialization.data(withJSONObject: [
      "localId": "lea", "customAttributes": #"{"role":"editor"}"#,
    ])
    try await fixture.send(
      "POST", fixture.authPort,
      "identitytoolkit.googleapis.com/v1/projects/\(fixture.project)/accounts:update",
      body)
    _ = try await user.getIDToken(forcingRefresh: true)
    #expect(try await fixture.mayWrite("editors/a") == (true, true))
    await fixture.close()
  }

  @Test("after a sign-out, listeners of both databases end with a permission error")
  func listeners() async throws {
    let fixture = try await RulesFixture()
    try await fixture.auth.signIn(withCustomToken: #"{"uid":"lea"}"#)
    #expect(try await fixture.mayWrite("users/lea") == (true, true))
    let (events, continuation) = AsyncStream<String>.makeStream()
    let registration = fixture.documents.document("users/lea").addSnapshotListener(
      includeMetadataChanges: true
    ) {
      snapshot, error in
      if let error { continuation.yield("document \((error as NSError).code)") }
      if snapshot?.metadata.isFromCache == false { continuation.yield("document") }
    }
    fixture.tree.reference(withPath: "users/lea").observe(
      .value, with: { _ in continuation.yield("tree") },
      withCancel: { continuation.yield("tree \(($0 as NSError).code)") })
    var seen: Set<String> = []
    for await event in events {
      seen.insert(event)
      if seen.isSuperset(of: ["document", "tree"]) { break }
    }
    try fixture.auth.signOut()
    for await event in events {
      seen.insert(event)
      if seen.isSuperset(of: ["document 7", "tree 1"]) { break }
    }
    registration.remove()
    await fixture.close()
  }
}
