// Follows docs/guides/rules.md: writes its files, and runs its commands in order against a running emulator.

import Foundation
import Testing

@Suite("Guide to rules", .timeLimit(.minutes(5)))
struct RulesGuideTests {
  /// A fenced block of the guide.
  private struct Block {
    var language: Substring
    /// The file that the line before the block names; nil for none.
    var file: Substring?
    var lines: [Substring]
  }

  private func blocks() throws -> [Block] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appendingPathComponent("docs/guides/rules.md"), encoding: .utf8)
    var blocks: [Block] = []
    var isOpen = false
    var title: Substring = ""
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        isOpen.toggle()
        let name = title.hasPrefix("`") && title.hasSuffix("`:") ? title.dropFirst().dropLast(2) : nil
        if isOpen { blocks.append(Block(language: line.dropFirst(3), file: name, lines: [])) }
        title = ""
      } else if isOpen {
        blocks[blocks.count - 1].lines.append(line)
      } else if !line.isEmpty {
        title = line
      }
    }
    return blocks
  }

  @Test("Every command of the guide to rules works as the guide says")
  func commands() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let server = try HearthProcess(
      ["serve", "--emulator", "--ephemeral", "--firestore-port", "0", "--database-port", "0"])
    try await server.wait(for: "ready\n")
    let firestore = "http://127.0.0.1:\(try server.port(of: "Cloud Firestore"))"
    let database = "http://127.0.0.1:\(try server.port(of: "Realtime Database"))"
    var count = 0
    for block in try blocks() {
      if let file = block.file {
        try Data((block.lines.joined(separator: "\n") + "\n").utf8).write(
          to: directory.appendingPathComponent(String(file)))
      }
      guard block.language == "sh" else { continue }
      for line in block.lines {
        let parts = line.split(separator: "#", maxSplits: 1)
        let expected: Int32 = parts.count > 1 && parts[1] == " exits 2" ? 2 : 0
        var words = parts[0].split(separator: " ").map(String.init)
        try #require(words.prefix(2) == ["hearth", "rules"], "\(line)")
        if ["deploy", "history", "rollback", "replay"].contains(words[2]) {
          let isDatabase = line.contains(".json") || line.contains("--product database")
          words += ["--server", isDatabase ? database : firestore]
        }
        let command = try HearthProcess(Array(words.dropFirst()), directory: directory)
        let code = await command.wait()
        #expect(code == expected, "\(line)\n\(command.output)\(command.errors)")
        count += 1
      }
    }
    #expect(count >= 14)
    server.signal(SIGTERM)
    #expect(await server.wait() == 0)
  }
}
