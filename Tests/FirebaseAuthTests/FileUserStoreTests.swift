// Tests the file user store: permissions, damage, and the state after a failed write.

import FirebaseCore
import Foundation
import Testing

@testable import FirebaseAuth

@Suite("Stored user") struct FileUserStoreTests {
  private let root = FileManager.default.temporaryDirectory.appendingPathComponent(
    "store-\(UUID().uuidString)"
  ).path

  private func store(_ name: String = "app") -> FileUserStore {
    FileUserStore(appID: "1:1:ios:ab", appName: name, root: root)
  }

  private func record(_ uid: String = "u1") throws -> UserRecord {
    var record = UserRecord(
      uid: uid,
      tokens: try #require(
        UserTokens(idToken: "t", refreshToken: "r", expiresIn: "3600", now: Date(timeIntervalSince1970: 5))))
    record.email = "lea@example.org"
    record.providers = [.init(providerID: "password", uid: "lea@example.org")]
    record.creationDate = Date(timeIntervalSince1970: 1_700_000_000.123)
    return record
  }

  private func permissions(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  @Test("a stored user can be read; no user is stored at first and after deletion")
  func roundTrip() throws {
    let store = store()
    #expect(try store.load() == nil)
    try store.save(nil)
    try store.save(try record())
    try store.save(try record("u2"))
    #expect(try store.load() == record("u2"))
    try store.save(nil)
    try store.save(nil)
    #expect(try store.load() == nil)
  }

  @Test("only their owner can access the file and its folder, and no temporary file remains")
  func ownerOnly() throws {
    let store = store()
    try store.save(try record())
    #expect(try permissions(store.path) == 0o600)
    let folder = (store.path as NSString).deletingLastPathComponent
    #expect(try permissions(folder) == 0o700)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder) == [
        (store.path as NSString).lastPathComponent
      ])
  }

  @Test("apps have separate files, and no name is outside the folder")
  func names() throws {
    let names = ["a", "A", "__FIRAPP_DEFAULT", "..", "../x", "a/b", "é", "a%2Fb", ""]
    #expect(Set(names.map { store($0).path }).count == names.count)
    for name in names {
      #expect(store(name).path.hasPrefix(root + "/firebase/1%3A1%3Aios%3Aab/"))
      #expect(!store(name).path.dropFirst(root.count).contains("/../"))
    }
  }

  @Test(
    "a damaged file is moved and reported once; the next read finds no user",
    arguments: ["", "{", "null", "[]", #"{"uid":"u1"}"#, #"{"uid":5}"#, "\u{FFFD}\u{0}"])
  func damaged(text: String) throws {
    let store = store()
    try store.save(try record())
    try Data(text.utf8).write(to: URL(fileURLWithPath: store.path))
    #expect(throws: UserStoreError.self) { try store.load() }
    #expect(try store.load() == nil)
    #expect(FileManager.default.contents(atPath: store.damagedPath) == Data(text.utf8))
    try store.save(try record())
    #expect(try store.load() == record())
  }

  @Test("a file that is truncated to any length counts as damaged")
  func truncated() throws {
    let store = store()
    try store.save(try record())
    let full = try #require(FileManager.default.contents(atPath: store.path))
    for length in stride(from: 0, to: full.count, by: 7) {
      try full.prefix(length).write(to: URL(fileURLWithPath: store.path))
      #expect(throws: UserStoreError.self) { try store.load() }
    }
  }

  @Test("if the folder cannot be written, an error is thrown and no user is stored")
  func unwritable() throws {
    let store = store()
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    // A file at the folder's path makes writing fail for every user, including root.
    try Data().write(to: URL(fileURLWithPath: root + "/firebase"))
    #expect(throws: (any Error).self) { try store.save(try record()) }
    #expect(try store.load() == nil)
    try store.save(nil)
  }

  @Test("an app whose stored user is damaged starts signed out")
  func start() async throws {
    let app = try makeApp()
    let store = FileUserStore(appID: app.options.googleAppID, appName: app.name)
    try store.save(try record())
    try Data("damaged".utf8).write(to: URL(fileURLWithPath: store.path))
    #expect(Auth.auth(app: app).currentUser == nil)
    _ = await app.delete()
  }
}
