// Tests databases and references: URLs, queries and settings. Programming errors trap, so each of these cases
// runs in a separate process.

import FirebaseCore
import Foundation
import RandomModels
import RealtimeModel
import RealtimeWire
import Testing

@testable import FirebaseDatabase

@Suite("Database and references", .timeLimit(.minutes(10)))
struct DatabaseTests {
  @Test(
    "a URL is parsed to host, port, transport security and namespace",
    arguments: [
      (
        "https://shop-default-rtdb.firebaseio.com", "shop-default-rtdb.firebaseio.com", nil, true,
        "shop-default-rtdb"
      ),
      (
        "https://Shop.europe-west1.firebasedatabase.app/", "shop.europe-west1.firebasedatabase.app", nil,
        true, "Shop"
      ),
      ("http://127.0.0.1:9000?ns=demo", "127.0.0.1", 9_000, false, "demo"),
      ("http://localhost:9000/a/b?ns=demo", "localhost", 9_000, false, "demo"),
      ("http://127.0.0.1:9000", "127.0.0.1", 9_000, false, "127"),
      ("https://db.example.com:8443?x=1&ns=n", "db.example.com", 8_443, true, "n"),
      ("http://shop.firebaseio.com", "shop.firebaseio.com", nil, true, "shop"),
      ("http://[::1]:9000/?ns=demo", "::1", 9_000, false, "demo"),
    ] as [(String, String, Int?, Bool, String)])
  func parsesURL(url: String, host: String, port: Int?, isSecure: Bool, namespace: String) throws {
    let endpoint = try #require(DatabaseEndpoint.parse(url)).endpoint
    #expect(endpoint.host == host)
    #expect(endpoint.port == port)
    #expect(endpoint.isSecure == isSecure)
    #expect(endpoint.namespace.lowercased() == namespace.lowercased())
  }

  @Test("paths in URLs are percent-decoded, and invalid URLs are rejected")
  func paths() {
    #expect(DatabaseEndpoint.parse("https://a.b.c/x/y%20z/p+q")?.path == ["x", "y z", "p q"])
    for bad in ["ftp://a.b.c", "https://", "https://a b", "http://h:99999", "http://h:x"] {
      #expect(DatabaseEndpoint.parse(bad) == nil, "\(bad)")
    }
  }

  @Test("each combination of app, server and namespace has one Database instance")
  func instances() async throws {
    let name = "instances-\(UUID().uuidString)"
    let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
    options.projectID = "shop"
    FirebaseApp.configure(name: name, options: options)
    let app = try #require(FirebaseApp.app(name: name))
    let database = Database.database(app: app)
    #expect(Database.database(app: app) === database)
    #expect(Database.database(app: app, url: "https://shop-default-rtdb.firebaseio.com/") === database)
    #expect(
      Database.database(app: app, url: "http://127.0.0.1:1?ns=a")
        !== Database.database(app: app, url: "http://127.0.0.1:1?ns=b"))
    #expect(database.app === app)
    database.useEmulator(withHost: "127.0.0.1", port: 9)
    database.goOffline()
    let ref = database.reference()
    #expect(ref.url == "http://127.0.0.1:9")
    #expect(ref.database === database)
    #expect(ref.optionalRepository?.endpoint.namespace == "shop-default-rtdb")
    _ = await app.delete()
    FirebaseApp.configure(name: name, options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    let recreated = try #require(FirebaseApp.app(name: name))
    #expect(Database.database(app: recreated, url: "https://shop-default-rtdb.firebaseio.com") !== database)
    _ = await recreated.delete()
  }

  @Test("references navigate the tree and return their locations")
  func references() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("a/b").child("ć d")
    #expect(ref.key == "ć d")
    #expect(ref.parent?.key == "b")
    #expect(ref.root.key == nil && ref.root.parent == nil)
    #expect(ref.url == "http://127.0.0.1:9/a/b/%C4%87%20d")
    #expect("\(ref)" == ref.url)
    let described: String = ref.description()
    #expect(described == ref.url)
    #expect(client.database.reference(withPath: "/a//b/").url == client.ref.child("a").child("b").url)
    #expect(client.database.reference(fromURL: "http://127.0.0.1:9/x/y%20z").key == "y z")
    #expect(client.database.reference(withPath: ".info/connected").key == "connected")
    #expect(client.ref.child("q").queryLimited(toFirst: 2).ref.key == "q")
    #expect(client.ref.child("q").queryLimited(toFirst: 2).description == #"(/q {"l":2,"vf":"l"})"#)
    await client.close()
  }

  @Test("a reference made from another reference's URL has the same location, for any keys")
  func urls() async throws {
    let client = try Client.offline()
    var random = SeededGenerator(seed: 5)
    let alphabet = [
      "a", "Z", " ", "+", "%", "%2F", "?", "&", "=", "ns=x", "é", "e\u{301}", "😀", ":", "@", "'", "\"", "\\",
      "~",
    ]
    for _ in 0..<300 {
      let keys = (0..<1 + random.below(3)).map { _ in
        (0..<1 + random.below(5)).map { _ in alphabet[random.below(alphabet.count)] }.joined()
      }
      let ref = client.ref.child(keys.joined(separator: "/"))
      let parsed = client.database.reference(fromURL: ref.url)
      #expect(parsed.path == ref.path && parsed.url == ref.url, "\(ref.url)")
    }
    await client.close()
  }

  @Test("auto ids are unique and sort in the order of their creation")
  func autoID() async throws {
    let client = try Client.offline()
    let keys = (0..<500).compactMap { _ in client.ref.childByAutoId().key }
    #expect(Set(keys).count == 500)
    #expect(keys == keys.sorted { ChildKey($0) < ChildKey($1) })
    #expect(keys.allSatisfy { $0.utf8.count == 20 })
    await client.close()
  }

  @Test("queries build the protocol's parameters, independent of the order of calls")
  func queries() async throws {
    let client = try Client.offline()
    let ref = client.ref
    func json(_ query: DatabaseQuery) -> String { String(decoding: query.spec.json(), as: UTF8.self) }
    #expect(json(ref) == "{}")
    #expect(
      json(ref.queryOrdered(byChild: "a/b").queryStarting(afterValue: 10).queryEnding(beforeValue: 20))
        == json(ref.queryEnding(beforeValue: 20).queryStarting(afterValue: 10).queryOrdered(byChild: "a/b")))
    let equal = json(ref.queryOrdered(byChild: "to").queryEqual(toValue: "u1"))
    #expect(equal == #"{"ein":true,"ep":"u1","i":"to","sin":true,"sp":"u1"}"#)
    #expect(
      json(ref.queryOrderedByKey().queryStarting(atValue: "k").queryLimited(toLast: 3))
        == #"{"i":".key","l":3,"sin":true,"sp":"k","vf":"r"}"#)
    #expect(json(ref.queryOrderedByValue().queryEqual(toValue: nil)).contains(#""sp":null"#))
    #expect(json(ref.queryOrdered(byChild: "x").queryEqual(toValue: true)).contains(#""sp":true"#))
    #expect(ref.queryOrderedByKey().spec.showsAll)
    await client.close()
  }

  /// Configures an app and returns its offline database, for tests in a separate process.
  static func database() -> Database {
    let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
    options.projectID = "p"
    FirebaseApp.configure(options: options)
    let database = Database.database()
    database.goOffline()
    return database
  }

  @Test("a database without configure(), or without URL and project, traps")
  func unconfigured() async {
    expectTrap(
      "FIRAppNotConfigured",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { Database.database() })
    expectTrap(
      "MissingProjectId",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        FirebaseApp.configure(options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
        Database.database()
      })
    expectTrap(
      "InvalidDatabaseURL",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().goOffline(); Database.database(url: "https://h.x.com/path")
      })
    expectTrap(
      "InvalidDatabaseURL",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference(fromURL: "https://other.firebaseio.com")
      })
  }

  @Test("changing settings after the first use traps")
  func frozenSettings() async {
    expectTrap(
      "NSInternalInconsistencyException",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().useEmulator(withHost: "h", port: 1)
      })
    expectTrap(
      "FIRDatabaseAlreadyInUse",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().isPersistenceEnabled = true
      })
    expectTrap(
      "FIRDatabaseAlreadyInUse",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().callbackQueue = .global()
      })
    expectTrap(
      "FIRDatabaseAlreadyInUse",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().persistenceCacheSizeBytes = 5 << 20
      })
  }

  @Test("settings out of range trap, and valid settings are stored")
  func settings() async throws {
    let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
    options.projectID = "p"
    let name = "settings-\(UUID().uuidString)"
    FirebaseApp.configure(name: name, options: options)
    let app = try #require(FirebaseApp.app(name: name))
    let database = Database.database(app: app)
    #expect(database.persistenceCacheSizeBytes == 10 << 20)
    database.persistenceCacheSizeBytes = 20 << 20
    #expect(database.persistenceCacheSizeBytes == 20 << 20)
    database.isPersistenceEnabled = true
    #expect(database.isPersistenceEnabled)
    _ = await app.delete()
    expectTrap(
      "NSInvalidArgumentException",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
        options.projectID = "p"
        FirebaseApp.configure(options: options)
        Database.database().persistenceCacheSizeBytes = 1_000
      })
  }

  @Test("illegal paths and values, and writes below .info, trap")
  func illegalData() async {
    expectTrap(
      "InvalidPathValidation",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().child("a.b")
      })
    expectTrap(
      "InvalidPathValidation",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference(withPath: "a#b")
      })
    // An empty ID must not refer to the parent list.
    expectTrap(
      "InvalidPathValidation",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().child("users").child("")
      })
    expectTrap(
      "InvalidPathValidation",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference(withPath: "")
      })
    expectTrap(
      "InvalidPathValidation",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        DataSnapshot().hasChild("")
      })
    expectTrap(
      "WritablePathValidation",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference(withPath: ".info/x").put(1)
      })
    expectTrap(
      "InvalidFirebaseData",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().child("x").put(Double.nan)
      })
    expectTrap(
      "InvalidFirebaseData",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().merge(["a": 1, "a/b": 2])
      })
    expectTrap(
      "InvalidFirebaseData",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().child("x").put(1, priority: true)
      })
    expectTrap(
      "NSInvalidArgumentException",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference(withPath: ".info/connected").keepSynced(true)
      })
    expectTrap(
      "FIRDatabaseNotConfigured",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        DatabaseReference().put(1)
      })
  }

  @Test("invalid queries trap, independent of the order of calls")
  func illegalQueries() async {
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryOrderedByKey().queryOrderedByValue()
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryLimited(toFirst: 0)
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryLimited(toFirst: 1 << 31)
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryLimited(toFirst: 1).queryLimited(toLast: 1)
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryStarting(atValue: 1).queryStarting(afterValue: 2)
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryEqual(toValue: 1).queryEnding(atValue: 2)
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryStarting(atValue: 5).queryOrderedByKey()
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryStarting(atValue: true)
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryOrdered(byChild: ".value")
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryOrdered(byChild: "")
      })
    expectTrap(
      "InvalidQueryParameter",
      await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        Self.database().reference().queryStarting(atValue: ["a"])
      })
  }

  /// Checks that a process ended because of the error that has this name in Google's SDK.
  private func expectTrap(
    _ name: String, _ result: ExitTest.Result?, location: SourceLocation = #_sourceLocation
  ) {
    let output = result.map { String(decoding: $0.standardErrorContent, as: UTF8.self) } ?? ""
    #expect(output.contains("\(name): "), "\(output)", sourceLocation: location)
  }
}
