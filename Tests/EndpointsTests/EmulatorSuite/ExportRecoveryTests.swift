// Exports that were killed on their way into a directory: whoever comes next finds the old export there or the new one,
// whole, and none of what was left behind.

import FirestoreProtobuf
import Foundation
import HearthServer
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

@Suite("Recovery of interrupted exports", .timeLimit(.minutes(5)))
struct ExportRecoveryTests {
  private static let manifest = "firebase-export-metadata.json"
  private static let id = "0123456789abcdef0123456789abcdef"

  /// A place where an export can be killed, and what must be found then.
  enum Kill: String, CaseIterable, CustomTestStringConvertible {
    /// While it writes.
    case writing
    /// Once the old manifest has gone.
    case manifestGone
    /// When part of what was there has gone.
    case going
    /// When all of it has.
    case gone
    /// Once the new export has been made to be the one that counts.
    case decided
    /// When part of that has come.
    case coming
    /// When all of that has come.
    case there
    /// In a directory that was empty, while it writes.
    case firstWriting
    /// In a directory that was empty, when part of it has come.
    case firstComing

    var testDescription: String { rawValue }
    /// The number that is found; nil for an empty directory.
    var found: Int64? {
      switch self {
      case .writing, .manifestGone, .going, .gone: 1
      case .decided, .coming, .there, .firstComing: 2
      case .firstWriting: nil
      }
    }
  }

  private func move(_ names: [String], _ source: String, _ target: String) throws {
    for name in names {
      try FileManager.default.moveItem(atPath: "\(source)/\(name)", toPath: "\(target)/\(name)")
    }
  }

  /// Leaves a directory as an export does that is killed.
  private func leave(_ kill: Kill, _ exports: [String]) throws -> String {
    let path = FirestoreTestServer.temporaryDirectory()
    let files = FileManager.default
    let parts = ["database_export", "firestore_export", "other_databases"]
    let isFirst = kill == .firstWriting || kill == .firstComing
    if isFirst {
      try files.createDirectory(atPath: path, withIntermediateDirectories: true)
    } else {
      try files.copyItem(atPath: exports[0], toPath: path)
    }
    let folder = "\(path)/.hearth-export-\(Self.id)"
    try files.copyItem(atPath: exports[1], toPath: "\(folder).staged")
    if kill == .writing || kill == .firstWriting {
      try files.removeItem(atPath: "\(folder).staged/\(Self.manifest)")
      return path
    }
    if !isFirst {
      let away = [Self.manifest] + (kill == .manifestGone ? [] : kill == .going ? [parts[0]] : parts)
      try files.createDirectory(atPath: "\(folder).old", withIntermediateDirectories: true)
      try move(away, path, "\(folder).old")
    }
    if [.manifestGone, .going, .gone].contains(kill) { return path }
    try files.moveItem(atPath: "\(folder).staged", toPath: "\(folder).new")
    if kill == .coming || kill == .firstComing { try move([parts[0]], "\(folder).new", path) }
    if kill == .there { try move(parts + [Self.manifest], "\(folder).new", path) }
    return path
  }

  /// Two exports of the same parts, with 1 and 2 in them.
  private func exports() async throws -> [String] {
    let paths = [FirestoreTestServer.temporaryDirectory(), FirestoreTestServer.temporaryDirectory()]
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      for (index, path) in paths.enumerated() {
        try await server.client.commit([.set("c/a", ["n": .int(Int64(index) + 1)])])
        _ = try await server.realtime("PUT", "/n.json?ns=other", "\(index + 1)")
        #expect(try await server.export(path).status == 200)
      }
    }
    return paths
  }

  private func expectFound(_ number: Int64, _ server: FirestoreTestServer) async throws {
    #expect(try await server.client.get("c/a").fields["n"]?.integerValue == number)
    #expect(try await server.realtime("GET", "/n.json?ns=other") == "\(number)")
    let other = try await server.rest("GET", "/v1/projects/demo-test/databases/second/documents/c/x")
    #expect(other.json["fields"]["n"]["integerValue"] == .string("7"))
  }

  private func names(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }

  @Test("after a kill at any point, an import reads a complete export and removes the remains")
  func importing() async throws {
    let exports = try await exports()
    defer { for path in exports { try? FileManager.default.removeItem(atPath: path) } }
    for kill in Kill.allCases {
      let path = try leave(kill, exports)
      defer { try? FileManager.default.removeItem(atPath: path) }
      try await FirestoreTestServer.servingSuite {
        $0.importedDirectory = path
        // An empty directory may be read where the export at the end fills it.
        if kill.found == nil { $0.exportOnExit = path }
      } _: { server in
        if let found = kill.found { try await expectFound(found, server) }
        #expect(try names(path) == (kill.found == nil ? [] : try names(exports[0])), "\(kill)")
      }
    }
  }

  @Test("after a kill at any point, the next export replaces the remains")
  func exporting() async throws {
    let exports = try await exports()
    defer { for path in exports { try? FileManager.default.removeItem(atPath: path) } }
    try await FirestoreTestServer.servingSuite { server in
      try await server.client.commit([.set("c/a", ["n": .int(3)])])
      for kill in Kill.allCases {
        let path = try leave(kill, exports)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let reply = try await server.export(path, targets: #","targets":["firestore"]"#)
        #expect(reply.status == 200, "\(kill): \(reply.body)")
        #expect(try names(path) == [Self.manifest, "firestore_export"], "\(kill)")
      }
    }
  }

  @Test("foreign folders stay, and existing files are not overwritten")
  func foreign() async throws {
    let exports = try await exports()
    defer { for path in exports { try? FileManager.default.removeItem(atPath: path) } }
    let files = FileManager.default
    // Read beside an export that is whole.
    let others = [
      ".hearth-export-x.old", ".hearth-export-\(Self.id)", ".hearth-export-\(Self.id).gone",
      ".hearth-export-\(Self.id.uppercased()).old",
    ]
    for name in others {
      try files.createDirectory(atPath: "\(exports[0])/\(name)", withIntermediateDirectories: true)
    }
    let link = ".hearth-export-\(Self.id).old"
    try files.createSymbolicLink(atPath: "\(exports[0])/\(link)", withDestinationPath: exports[1])
    try Data([1]).write(to: URL(fileURLWithPath: "\(exports[0])/.hearth-export-\(Self.id).new"))
    let before = try names(exports[0])
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = exports[0] }) { server in
      try await expectFound(1, server)
    }
    #expect(try names(exports[0]) == before)
    #expect(try names(exports[1]).contains(Self.manifest))

    let path = try leave(.coming, [exports[1], exports[1]])
    defer { try? files.removeItem(atPath: path) }
    try Data([1]).write(to: URL(fileURLWithPath: "\(path)/firestore_export"))
    let refusal = await FirestoreTestServer.refusal { $0.importedDirectory = path }
    #expect(
      refusal.contains("\(Self.id).new") && refusal.contains("/firestore_export: File exists"), "\(refusal)")
    #expect(try Data(contentsOf: URL(fileURLWithPath: "\(path)/firestore_export")) == Data([1]))
    try files.removeItem(atPath: "\(path)/firestore_export")
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) { server in
      try await expectFound(2, server)
    }
  }

  @Test("a directory to which another process exports is not changed")
  func held() async throws {
    let exports = try await exports()
    defer { for path in exports { try? FileManager.default.removeItem(atPath: path) } }
    let path = try leave(.writing, exports)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let before = try names(path)
    let holder = open(path, O_RDONLY)
    try #require(flock(holder, LOCK_EX | LOCK_NB) == 0)
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) { server in
      try await expectFound(1, server)
      let refused = try await server.export(path)
      #expect(
        refused.json["message"].string?.hasPrefix("Another process is exporting to \(path).") == true,
        "\(refused.body)")
      #expect(try names(path) == before)
      close(holder)
      #expect(try await server.export(path).status == 200)
    }
  }
}
