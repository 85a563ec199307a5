// Tests the documentation: this target compiles every example in the catalogues and guides.

import Foundation
import Testing

@Suite("Documentation") struct DocumentationTests {
  /// The lines of a file in the repository, without indentation.
  private func lines(_ path: String) throws -> [Substring] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    return text.split(separator: "\n").map { $0.drop { $0 == " " } }
  }

  @Test(
    "Every example in a documentation catalogue is compiled",
    arguments: [
      ("FirebaseAuth", "Auth"), ("FirebaseAuthCombineSwift", "AuthCombine"), ("FirebaseCore", "Core"),
      ("FirebaseDatabase", "Database"),
      ("FirebaseFirestore", "Firestore"), ("FirebaseFirestoreCombineSwift", "Combine"),
      ("Firebase", "Umbrella"),
    ])
  func examplesAreCompiled(library: String, file: String) throws {
    try checkPage(library, of: library, compiledIn: file)
  }

  @Test(
    "Every example in the guides of FirebaseDatabase is compiled",
    arguments: ["FirstApp", "Offline", "Presence", "Testing", "Transactions"])
  func databaseGuides(page: String) throws {
    try checkPage(page, of: "FirebaseDatabase", compiledIn: "Database")
  }

  @Test(
    "Every example in the guides of FirebaseFirestore is compiled",
    arguments: ["FirstApp", "Offline", "Codable", "Testing", "Moving"])
  func firestoreGuides(page: String) throws {
    try checkPage(page, of: "FirebaseFirestore", compiledIn: "FirestoreGuide")
  }

  @Test("Every example in the client guide is compiled")
  func clientGuide() throws {
    // The package manifest cannot be compiled in a test, and ClientGuideTests compiles the program.
    try check("docs/guides/clients.md", compiledIn: "ClientGuide") { block in
      !block.contains("import PackageDescription") && !block.contains("@main")
    }
  }

  @Test("The Swift program of the README is compiled")
  func readme() throws {
    try check("README.md", compiledIn: "Readme") { !$0.contains("import PackageDescription") }
  }

  private func checkPage(_ page: String, of library: String, compiledIn file: String) throws {
    try check("Sources/SDK/\(library)/\(library).docc/\(page).md", compiledIn: file) { _ in true }
  }

  private func check(
    _ page: String, compiledIn file: String, isExample: (ArraySlice<Substring>) -> Bool
  ) throws {
    let compiled = try lines("Tests/FirebaseTests/Documentation/\(file)Examples.swift")
    let blocks = try lines(page)
      .split(separator: "```swift").dropFirst().map { $0.prefix { $0 != "```" } }.filter(isExample)
      .map { $0.filter { $0 != "@main" } }
    #expect(!blocks.isEmpty)
    for block in blocks {
      let isCompiled = compiled.indices.contains { compiled[$0...].starts(with: block) }
      #expect(isCompiled, "not compiled: \(block.first ?? "")")
    }
  }
}
