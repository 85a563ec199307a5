// What the settings of the cache mean, and what is refused.

import FirebaseCore
import Foundation
import Testing

@testable import FirebaseFirestore

private final class ForeignSettings: NSObject, MemoryGarbageCollectorSettings {}

@Suite struct SettingsTests {
  private static let unused = 1

  @Test func theSettingsOfTheCacheSayWhatIsInEffect() {
    let settings = FirestoreSettings()
    #expect(settings.isPersistenceEnabled && settings.cacheSizeBytes == 100 << 20)
    #expect(settings.cacheSettings.isEqual(PersistentCacheSettings()))
    settings.cacheSizeBytes = 2 << 20
    #expect(settings.cacheSizeBytes == 2 << 20)
    #expect(settings.cacheSettings.isEqual(PersistentCacheSettings(sizeBytes: 2 << 20 as NSNumber)))
    settings.isPersistenceEnabled = false
    #expect(settings.cacheSettings.isEqual(MemoryCacheSettings()))
    #expect(settings.cacheSizeBytes == 2 << 20, "kept for when persistence is enabled again")
    settings.isPersistenceEnabled = true
    #expect(settings.cacheSettings.isEqual(PersistentCacheSettings(sizeBytes: 2 << 20 as NSNumber)))
    let copy = settings.copy() as? FirestoreSettings
    #expect(copy == settings)
    settings.cacheSizeBytes = FirestoreCacheSizeUnlimited
    #expect(copy != settings)
  }

  @Test func aCacheInMemoryKeepsToTheSizeItWasGiven() {
    let settings = FirestoreSettings()
    let lru = MemoryCacheSettings(
      garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: 3 << 20 as NSNumber))
    settings.cacheSettings = lru
    #expect(lru.size == 3 << 20 && settings.cacheSettings.isEqual(lru))
    #expect(MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting()).size == nil)
  }

  @Test func contradictoryOrForeignSettingsStopTheProgram() async throws {
    await #expect(processExitsWith: .failure) { FirestoreSettings().cacheSizeBytes = 1_000 }
    let foreign = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = MemoryCacheSettings(garbageCollectorSettings: ForeignSettings())
    }
    #expect(text(foreign).contains("MemoryEagerGCSetting or MemoryLRUGCSettings"))
    let size = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let settings = FirestoreSettings()
      settings.cacheSettings = MemoryCacheSettings()
      settings.cacheSizeBytes = 2 << 20
      TestClient.make(port: SettingsTests.unused).settings = settings
    }
    #expect(text(size).contains("cacheSizeBytes"))
    let persistence = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let settings = FirestoreSettings()
      settings.isPersistenceEnabled = false
      settings.cacheSettings = PersistentCacheSettings()
      TestClient.make(port: SettingsTests.unused).settings = settings
    }
    #expect(text(persistence).contains("isPersistenceEnabled"))
  }

  @Test func whatHasNoEffectIsWarnedOfOnceAProcess() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      for _ in 0..<3 {
        _ = TestClient.make(port: SettingsTests.unused).document("a/b")
        let eager = TestClient.make(port: SettingsTests.unused)
        let settings = eager.settings
        settings.isPersistenceEnabled = false
        settings.cacheSizeBytes = 2 << 20
        eager.settings = settings
        _ = eager.document("a/b")
      }
    }
    let lines = text(result).split(separator: "\n")
    #expect(lines.count { $0.contains("I-FST000006") } == 1)
    #expect(lines.count { $0.contains("I-FST000007") && $0.contains("MemoryLRUGCSettings") } == 1)
  }

  private func text(_ result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }
}
