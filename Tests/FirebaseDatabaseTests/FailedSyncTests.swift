// Tests failed syncs of the cache file: the app receives an error, and a new file replaces the old one. The log is
// SQLite's write-ahead log.

import Foundation
import Locking
import RealtimeModel
import Testing

@testable import FirebaseDatabase

/// A replacement for the function that syncs files. It does not sync, and fails for chosen files.
final class FailingDisk: Sendable {
  struct State {
    var failingSuffixes: [String] = []
    /// The number of syncs that succeed before one fails; nil if none fails.
    var syncsUntilFailure: Int?
    var copiesFolder = false
    var copies: [DataFolder] = []
    /// Called before each sync.
    var observer: (@Sendable () -> Void)?
  }

  let folder: DataFolder
  let state = Guarded(State())

  init(_ folder: DataFolder) { self.folder = folder }

  /// Makes the syncs of files with these suffixes fail.
  func setFailingSuffixes(_ suffixes: String...) { state.withLock { $0.failingSuffixes = suffixes } }

  /// Makes one sync fail after a number of successful syncs.
  func failOnce(after count: Int) { state.withLock { $0.syncsUntilFailure = count } }

  /// Copies the folder at each sync from now on. A copy contains the files that remain after a kill at this time.
  func copyFolderAtEachSync() { state.withLock { $0.copiesFolder = true } }

  var sync: LogSync.Sync {
    { [self] url in
      let (suffixes, copiesFolder, observer) = state.withLock {
        ($0.failingSuffixes, $0.copiesFolder, $0.observer)
      }
      observer?()
      if copiesFolder {
        let copy = try DataFolder()
        try FileManager.default.removeItem(at: copy.url)
        try FileManager.default.copyItem(at: folder.url, to: copy.url)
        state.withLock { $0.copies.append(copy) }
      }
      let isDue = state.withLock { state in
        guard let rest = state.syncsUntilFailure else { return false }
        state.syncsUntilFailure = rest > 0 ? rest - 1 : nil
        return rest == 0
      }
      if isDue { throw CacheFailure.unsynced("simulated") }
      if suffixes.contains(where: { url.path.hasSuffix($0) }) { throw CacheFailure.unsynced("simulated") }
    }
  }
}

@Suite("Failed syncs of the cache", .timeLimit(.minutes(10)))
struct FailedSyncTests {
  private static let put = OutgoingWrite(id: 3, path: "a/b", change: .put(.leaf(.int(1)), hash: nil))
  private static let later = OutgoingWrite(id: 4, path: "a/c", change: .put(.leaf(.int(2)), hash: nil))

  /// A storage with an observed list and a pending write. The sync of the write-ahead log failed.
  private static func makeUnsyncedStorage(_ disk: FailingDisk) -> (StorageFixture, TestSource) {
    let fixture = StorageFixture(disk.folder, sync: disk.sync)
    let source = TestSource()
    source.storageContents = StorageContents(
      writes: [put],
      queries: [("list", .default, CacheNode(node: .leaf(.int(5)), isComplete: true, isFiltered: false))])
    fixture.storage.source = source
    _ = fixture.storage.restore()
    fixture.storage.activate(.default, at: "list")
    disk.setFailingSuffixes("-wal")
    fixture.storage.append(put)
    fixture.storage.commit()
    // Waits for the sync.
    fixture.storage.file?.sync.close()
    return (fixture, source)
  }

  @Test("after a failed sync the app gets an error, and a new file has the pending writes and observed data")
  func newFile() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let disk = FailingDisk(folder)
    let (fixture, source) = FailedSyncTests.makeUnsyncedStorage(disk)
    let number = try FileManager.default.attributesOfItem(atPath: folder.file.path)[.systemFileNumber] as? Int
    #expect(source.retries == [0], "a retry is also scheduled for an idle app")
    fixture.storage.retry()
    #expect(fixture.codes == [CachePersistenceError.unsynced.rawValue])
    #expect(source.retries == [0, 0])
    disk.setFailingSuffixes()
    fixture.storage.retry()
    #expect(fixture.storage.load(.default, at: "list").node == .leaf(.int(5)))
    let new = try FileManager.default.attributesOfItem(atPath: folder.file.path)[.systemFileNumber] as? Int
    #expect(number != new)
    fixture.storage.append(FailedSyncTests.later)
    fixture.storage.commit()
    fixture.storage.close()
    #expect(fixture.codes.count == 1 && source.retries.count == 2)
    #expect(try files(in: folder, suffix: "").count == 2, "the file and its lock")
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [3, 4])
    reopened.storage.close()
  }

  @Test("while every sync fails, the app gets one error and the repair is retried with growing delays")
  func failingDisk() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let disk = FailingDisk(folder)
    let (fixture, source) = FailedSyncTests.makeUnsyncedStorage(disk)
    disk.setFailingSuffixes("-wal", ".new")
    fixture.storage.retry()
    for _ in 0..<3 { fixture.storage.retry() }
    #expect(source.retries == [0, 0, 1_000, 2_000, 4_000])
    #expect(fixture.codes == [CachePersistenceError.unsynced.rawValue])
    disk.setFailingSuffixes()
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [3], "closing is one more attempt")
    reopened.storage.close()
  }

  @Test("if the process ends while the new file is written, the next start finds every pending write")
  func interrupted() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let disk = FailingDisk(folder)
    let (fixture, source) = FailedSyncTests.makeUnsyncedStorage(disk)
    fixture.storage.retry()
    disk.setFailingSuffixes()
    disk.copyFolderAtEachSync()
    fixture.storage.retry()
    let copies = disk.state.withLock { $0.copies }
    #expect(source.retries.count == 2)
    #expect(
      copies.count == 4,
      "one each after the new file, its rename, the removal of the log and the final rename")
    fixture.storage.close()
    for (moment, copy) in copies.enumerated() {
      defer { copy.remove() }
      let reopened = StorageFixture(copy)
      #expect(reopened.storage.restore().map(\.id) == [3], "moment \(moment)")
      #expect(reopened.codes.isEmpty, "moment \(moment)")
      reopened.storage.append(FailedSyncTests.later)
      reopened.storage.commit()
      reopened.storage.close()
      #expect(try files(in: copy, suffix: "").count == 2, "the file and its lock")
      let third = StorageFixture(copy)
      #expect(third.storage.restore().map(\.id) == [3, 4], "moment \(moment)")
      third.storage.close()
    }
  }

  @Test("no other process can use the cache while a new file replaces the old one")
  func exclusiveReplacement() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let disk = FailingDisk(folder)
    let (fixture, source) = FailedSyncTests.makeUnsyncedStorage(disk)
    fixture.storage.retry()
    disk.setFailingSuffixes()
    let codes = Guarded<[[Int]]>([])
    disk.state.withLock { state in
      state.observer = {
        let other = StorageFixture(folder)
        _ = other.storage.restore()
        codes.withLock { $0.append(other.codes) }
        other.storage.close()
      }
    }
    fixture.storage.retry()
    disk.state.withLock { $0.observer = nil }
    #expect(codes.withLock { $0 } == Array(repeating: [CachePersistenceError.inUse.rawValue], count: 4))
    #expect(source.retries.count == 2)
    #expect(fixture.storage.load(.default, at: "list").node == .leaf(.int(5)))
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [3])
    reopened.storage.close()
  }

  @Test("if the write-ahead log of an open file is removed, the client treats this as a failed sync")
  func removedLog() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    let source = TestSource()
    fixture.storage.source = source
    _ = fixture.storage.restore()
    fixture.storage.append(FailedSyncTests.put)
    fixture.storage.commit()
    fixture.storage.file?.sync.close()
    source.storageContents.writes = [FailedSyncTests.put, FailedSyncTests.later]
    try FileManager.default.removeItem(atPath: folder.file.path + "-wal")
    fixture.storage.append(FailedSyncTests.later)
    fixture.storage.commit()
    fixture.storage.close()
    #expect(fixture.codes == [CachePersistenceError.unsynced.rawValue])
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [3, 4])
    reopened.storage.close()
  }
}
