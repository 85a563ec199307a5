// Replays the fuzzing corpus: seed inputs, and inputs that once failed. Every test run covers them. `make fuzz` starts
// from the same inputs and changes them at random.

import Foundation
import NIOPosix
import Testing

@Suite("Fuzzing corpus", .timeLimit(.minutes(2)))
struct CorpusTests {
  private static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../Fuzz/Corpus").standardizedFileURL

  @Test("Every target accepts each of its inputs, complete and truncated", arguments: FuzzTarget.allCases)
  func replay(target: FuzzTarget) async throws {
    let directory = Self.corpus.appendingPathComponent(target.rawValue)
    let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
    try #require(!files.isEmpty)
    for file in files.sorted(by: { $0.path < $1.path }) {
      let input = try [UInt8](Data(contentsOf: file))
      for end in Set([input.count, input.count / 2, max(0, input.count - 1)]) {
        do {
          // Targets block until their work is done, so they run outside the threads of the tests.
          try await NIOThreadPool.singleton.runIfActive {
            try input.prefix(end).withUnsafeBytes { try target.run($0) }
          }
        } catch { Issue.record("\(target.rawValue)/\(file.lastPathComponent) to byte \(end): \(error)") }
      }
    }
  }

  @Test("Every corpus folder has its target")
  func folders() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
    #expect(Set(folders) == Set(FuzzTarget.allCases.map(\.rawValue)))
  }
}
