// Tests the sync engine with the public JSON cases for client SDKs.
//
// The environment variable HEARTH_CONFORMANCE names the folder with the cases; without it the test is skipped. Each
// case passes, is skipped for a printed reason, or is a known failure. Any other outcome fails the test, and so does
// a known failure that passes.

import Foundation
import Testing

@testable import FirebaseFirestore

@Suite("Sync specs", .timeLimit(.minutes(10))) struct SyncSpecTests {
  /// Cases that currently fail. Entries may only be removed.
  static let knownFailures: Set<String> = []

  @Test(
    "every public sync case passes, is skipped for a reason or is a known failure",
    .enabled(
      if: ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"] != nil, "HEARTH_CONFORMANCE is not set"),
    arguments: CacheKind.allCases)
  func syncCases(cache: CacheKind) throws {
    guard let root = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"] else {
      print("sync specs: HEARTH_CONFORMANCE is not set, nothing run")
      return
    }
    let folder = URL(fileURLWithPath: root).appendingPathComponent("firestore-sync-specs")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }
    #expect(!files.isEmpty)
    var run = 0
    var passed = 0
    var skipped: [String: Int] = [:]
    var failures: [String] = []
    for file in files {
      let cases = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any] ?? [:]
      for (name, body) in cases.sorted(by: { $0.key < $1.key }) {
        let body = body as? [String: Any] ?? [:]
        if let reason = SyncSpecRunner.reasonToSkip(body, on: cache) {
          skipped[reason, default: 0] += 1
          continue
        }
        run += 1
        var runner = try SyncSpecRunner(body, on: cache)
        let problem = runner.run()
        let isKnown = SyncSpecTests.knownFailures.contains(name)
        if problem == nil { passed += 1 }
        if let problem, !isKnown { failures.append("\(file.lastPathComponent): \(name): \(problem)") }
        if problem == nil, isKnown { failures.append("\(name) passes: remove it from the list") }
      }
    }
    print(
      "sync specs on \(cache.rawValue): run \(run), passed \(passed), known failures \(run - passed), skipped",
      skipped)
    for failure in failures { Issue.record("\(failure)") }
  }
}
