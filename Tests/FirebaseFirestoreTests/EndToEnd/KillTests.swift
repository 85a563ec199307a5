// Tests killed clients: a client process that is killed while it queues writes loses no write that its cache
// has accepted.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

@Suite("Killed clients", .serialized, .timeLimit(.minutes(3))) struct KillTests {
  private static let folderVariable = "KILLED_CLIENT_FOLDER"

  @Test(
    "every write that the cache accepted before a kill is in the queue of the next process", arguments: 1...3)
  func killedClient(round: Int) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("killed-\(UUID().uuidString)")
    setenv(KillTests.folderVariable, folder.path, 1)
    setenv("KILLED_CLIENT_COUNT", "\(round * 37)", 1)
    defer { try? FileManager.default.removeItem(at: folder) }
    await #expect(processExitsWith: .signal(SIGKILL)) {
      setenv("XDG_DATA_HOME", ProcessInfo.processInfo.environment[KillTests.folderVariable] ?? "/nowhere", 1)
      let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
      options.projectID = "killed"
      FirebaseApp.configure(name: "killed", options: options)
      let client = Firestore.firestore(app: try #require(FirebaseApp.app(name: "killed")))
      client.useEmulator(withHost: "127.0.0.1", port: 1)
      let count = Int(ProcessInfo.processInfo.environment["KILLED_CLIENT_COUNT"] ?? "") ?? 10
      for n in 0..<count { client.document("c/\(n)").setData(["n": n]) { _ in } }
      // The client has handled all counted writes. More writes follow, so that the kill interrupts a write.
      _ = try await client.cacheCount(of: "c")
      for n in count..<(count + 500) { client.document("c/\(n)").setData(["n": n]) { _ in } }
      kill(getpid(), SIGKILL)
      // The process may handle the signal later.
      while true { pause() }
    }
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    let file = try #require(files?.compactMap { $0 as? URL }.first { $0.lastPathComponent == "cache.sqlite" })
    let cache = try DiskPersistence(
      try CacheFolder(file.deletingLastPathComponent()), database: DatabaseName(project: "killed"))
    defer { cache.close() }
    let ids = cache.allBatches.flatMap(\.documents).map(\.id)
    #expect(ids.count >= round * 37)
    #expect(ids == (0..<ids.count).map { "\($0)" })
    #expect(cache.overlays(in: ResourcePath(["c"])).count == ids.count)
  }
}
