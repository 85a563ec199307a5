// Tests the cache settings: their effective values and limits, and settings that trap.

import FirebaseCore
import Foundation
import Testing

@testable import FirebaseFirestore

private final class ForeignSettings: NSObject, MemoryGarbageCollectorSettings {}

@Suite("Cache settings") struct SettingsTests {
  private static let unreachablePort = 1

  @Test("cacheSettings reflects isPersistenceEnabled and cacheSizeBytes")
  func effectiveValues() {
    let settings = FirestoreSettings()
    #expect(settings.isPersistenceEnabled && settings.cacheSizeBytes == 100 << 20)
    #expect(settings.cacheSettings.isEqual(PersistentCacheSettings()))
    settings.cacheSizeBytes = 2 << 20
    #expect(settings.cacheSizeBytes == 2 << 20)
    #expect(settings.cacheSettings.isEqual(PersistentCacheSettings(sizeBytes: 2 << 20 as NSNumber)))
    settings.isPersistenceEnabled = false
    let lru = MemoryLRUGCSettings(sizeBytes: 2 << 20 as NSNumber)
    #expect(settings.cacheSettings.isEqual(MemoryCacheSettings(garbageCollectorSettings: lru)))
    settings.isPersistenceEnabled = true
    #expect(settings.cacheSettings.isEqual(PersistentCacheSettings(sizeBytes: 2 << 20 as NSNumber)))
    let copy = settings.copy() as? FirestoreSettings
    #expect(copy == settings)
    settings.cacheSizeBytes = FirestoreCacheSizeUnlimited
    #expect(copy != settings)
  }

  @Test("a memory cache has the size of its garbage collector settings")
  func memoryCacheSize() {
    let settings = FirestoreSettings()
    let lru = MemoryCacheSettings(
      garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: 3 << 20 as NSNumber))
    settings.cacheSettings = lru
    #expect(lru.size == 3 << 20 && settings.cacheSettings.isEqual(lru))
    #expect(MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting()).size == nil)
    #expect(MemoryCacheSettings().size == 100 << 20, "the default is LRU")
  }

  @Test("contradictory settings trap, and so do app types that conform to the settings protocols")
  func invalidSettings() async throws {
    await #expect(processExitsWith: .failure) { FirestoreSettings().cacheSizeBytes = 1_000 }
    let foreign = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = MemoryCacheSettings(garbageCollectorSettings: ForeignSettings())
    }
    #expect(standardError(foreign).contains("MemoryEagerGCSetting or MemoryLRUGCSettings"))
    let size = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let settings = FirestoreSettings()
      settings.cacheSettings = MemoryCacheSettings()
      settings.cacheSizeBytes = 2 << 20
      TestClient.make(port: SettingsTests.unreachablePort).settings = settings
    }
    #expect(standardError(size).contains("cacheSizeBytes"))
    let persistence = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let settings = FirestoreSettings()
      settings.isPersistenceEnabled = false
      settings.cacheSettings = PersistentCacheSettings()
      TestClient.make(port: SettingsTests.unreachablePort).settings = settings
    }
    #expect(standardError(persistence).contains("isPersistenceEnabled"))
  }

  private func standardError(_ result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }
}
