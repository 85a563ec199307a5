// Tests that the umbrella module `Firebase` exports every public name of the two databases. Each line of its sources has
// one export.

import Foundation
import Testing

@Suite("Umbrella exports") struct UmbrellaNamesTests {
  /// Names that both databases declare. An app that needs one imports the product explicitly.
  private let shared = ["ServerTimestamp"]

  private func sources(_ folder: String) throws -> [String] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Sources/SDK/\(folder)")
    let files = try #require(FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil))
    return try files.compactMap { file in
      guard let url = file as? URL, url.pathExtension == "swift" else { return nil }
      return try String(contentsOf: url, encoding: .utf8)
    }
  }

  @Test("the umbrella exports every public name", arguments: ["FirebaseDatabase", "FirebaseFirestore"])
  func exports(of module: String) throws {
    let declaration =
      /^(?:@\w+(?:\([^)]*\))? )*(?:public|open) (?:(?:final|indirect|nonisolated(?:\(unsafe\))?) )*(class|struct|enum|protocol|typealias|let|var|func) (\w+)/
    var exports: Set<Substring> = []
    for line in try sources("Firebase").flatMap({ $0.split(separator: "\n") }) {
      if line.hasPrefix("@_exported import "), let name = line.split(separator: ".").last,
        line.contains(" \(module).")
      {
        exports.insert(name)
      }
    }
    var found: Set<Substring> = []
    for line in try sources(module).flatMap({ $0.split(separator: "\n") }) {
      guard let match = line.firstMatch(of: declaration) else { continue }
      found.insert(match.2)
    }
    #expect(found.count >= 9)
    let missing = found.subtracting(exports).subtracting(shared.map { Substring($0) })
    #expect(missing.isEmpty, "not exported by the umbrella: \(missing.sorted())")
  }
}
