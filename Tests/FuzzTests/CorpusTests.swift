// Runs the inputs that the fuzzers begin with, and those that once failed: what `make fuzz` holds against random bytes is
// held against these in every run.

import Foundation
import NIOPosix
import Testing

@Suite("The fuzzers' inputs", .timeLimit(.minutes(2)))
struct CorpusTests {
  private static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../../Fuzz/Corpus").standardizedFileURL

  @Test("Every target holds for each of its inputs, and for each cut short", arguments: FuzzTarget.allCases)
  func replay(target: FuzzTarget) async throws {
    let directory = Self.corpus.appendingPathComponent(target.rawValue)
    let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
    try #require(!files.isEmpty)
    for file in files.sorted(by: { $0.path < $1.path }) {
      let input = try [UInt8](Data(contentsOf: file))
      for end in Set([input.count, input.count / 2, max(0, input.count - 1)]) {
        do {
          // Targets wait for what they start, which no thread of the tests' own may do.
          try await NIOThreadPool.singleton.runIfActive {
            try input.prefix(end).withUnsafeBytes { try target.run($0) }
          }
        } catch { Issue.record("\(target.rawValue)/\(file.lastPathComponent) to byte \(end): \(error)") }
      }
    }
  }

  @Test("Every folder of inputs has its target")
  func folders() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
    #expect(Set(folders) == Set(FuzzTarget.allCases.map(\.rawValue)))
  }
}
