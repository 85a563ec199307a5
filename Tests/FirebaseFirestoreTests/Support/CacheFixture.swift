// The cache fixture: caches for tests in memory, or in a folder that is removed at the end.

import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

/// The kinds of cache that tests run on.
enum CacheKind: String, CaseIterable, CustomTestStringConvertible {
  case memory, disk
  var testDescription: String { rawValue }
}

/// Opens caches of one kind. A cache on disk is in a new folder.
final class CacheFixture {
  let kind: CacheKind
  let folder: URL

  init(_ kind: CacheKind) {
    self.kind = kind
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("cache-\(UUID().uuidString)")
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  var file: URL { folder.appendingPathComponent("cache.sqlite") }

  /// Opens the cache. A cache on disk has the contents from when it was last closed.
  func open(
    isEager: Bool = false, database: DatabaseName = DatabaseName(project: "test")
  ) throws -> any Persistence {
    switch kind {
    case .memory: MemoryPersistence(isEager: isEager)
    case .disk: try DiskPersistence(try CacheFolder(folder), database: database)
    }
  }
}
