// Tests exports that are killed at every step. The next export or import finds the complete old or new export, and
// removes the folders that the killed export has created and not removed.

import FirestoreProtobuf
import Foundation
import HearthServer
import Testing

@testable import EndpointFixture

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

  /// The step at which an export is killed, and the expected recovery.
  enum Kill: String, CaseIterable, CustomTestStringConvertible {
    /// While files are written.
    case writing
    /// After the old manifest was moved.
    case manifestMoved
    /// After a part of the old export was moved.
    case partOfOldMoved
    /// After all of the old export was moved.
    case oldMoved
    /// After the new export became the valid one.
    case committed
    /// After a part of the new export was moved into place.
    case partOfNewMoved
    /// After all of the new export was moved into place.
    case newMoved
    /// In an empty directory, while files are written.
    case initialWriting
    /// In an empty directory, after a part of the export was moved into place.
    case initialPartMoved

    var testDescription: String { rawValue }
    /// The number in the recovered export; nil for an empty directory.
    var recoveredNumber: Int64? {
      switch self {
      case .writing, .manifestMoved, .partOfOldMoved, .oldMoved: 1
      case .committed, .partOfNewMoved, .newMoved, .initialPartMoved: 2
      case .initialWriting: nil
      }
    }
  }

  private func move(_ names: [String], _ source: String, _ target: String) throws {
    for name in names {
      try FileManager.default.moveItem(atPath: "\(source)/\(name)", toPath: "\(target)/\(name)")
    }
  }

  /// Creates a directory in the state after an export was killed at this step.
  private func makeDirectory(killedAt kill: Kill, _ exports: [String]) throws -> String {
    let path = FirestoreTestServer.temporaryDirectory()
    let files = FileManager.default
    let parts = ["database_export", "firestore_export", "other_databases"]
    let isFirst = kill == .initialWriting || kill == .initialPartMoved
    if isFirst {
      try files.createDirectory(atPath: path, withIntermediateDirectories: true)
    } else {
      try files.copyItem(atPath: exports[0], toPath: path)
    }
    let folder = "\(path)/.hearth-export-\(Self.id)"
    try files.copyItem(atPath: exports[1], toPath: "\(folder).staged")
    if kill == .writing || kill == .initialWriting {
      try files.removeItem(atPath: "\(folder).staged/\(Self.manifest)")
      return path
    }
    if !isFirst {
      let movedNames =
        [Self.manifest] + (kill == .manifestMoved ? [] : kill == .partOfOldMoved ? [parts[0]] : parts)
      try files.createDirectory(atPath: "\(folder).old", withIntermediateDirectories: true)
      try move(movedNames, path, "\(folder).old")
    }
    if [.manifestMoved, .partOfOldMoved, .oldMoved].contains(kill) { return path }
    try files.moveItem(atPath: "\(folder).staged", toPath: "\(folder).new")
    if kill == .partOfNewMoved || kill == .initialPartMoved { try move([parts[0]], "\(folder).new", path) }
    if kill == .newMoved { try move(parts + [Self.manifest], "\(folder).new", path) }
    return path
  }

  /// Two exports of the same parts, with the values 1 and 2.
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

  @Test("After a kill at any step, an import reads a complete export and removes the killed export's folders")
  func importing() async throws {
    let exports = try await exports()
    defer { for path in exports { try? FileManager.default.removeItem(atPath: path) } }
    for kill in Kill.allCases {
      let path = try makeDirectory(killedAt: kill, exports)
      defer { try? FileManager.default.removeItem(atPath: path) }
      try await FirestoreTestServer.servingSuite {
        $0.importedDirectory = path
        // An import may read an empty directory that the export on exit fills.
        if kill.recoveredNumber == nil { $0.exportOnExit = path }
      } _: { server in
        if let number = kill.recoveredNumber { try await expectFound(number, server) }
        #expect(try names(path) == (kill.recoveredNumber == nil ? [] : try names(exports[0])), "\(kill)")
      }
    }
  }

  @Test("After a kill at any step, the next export replaces the contents of the directory")
  func exporting() async throws {
    let exports = try await exports()
    defer { for path in exports { try? FileManager.default.removeItem(atPath: path) } }
    try await FirestoreTestServer.servingSuite { server in
      try await server.client.commit([.set("c/a", ["n": .int(3)])])
      for kill in Kill.allCases {
        let path = try makeDirectory(killedAt: kill, exports)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let reply = try await server.export(path, targets: #","targets":["firestore"]"#)
        #expect(reply.status == 200, "\(kill): \(reply.body)")
        #expect(try names(path) == [Self.manifest, "firestore_export"], "\(kill)")
      }
    }
  }

  @Test("Recovery keeps folders that only resemble those of an export, and overwrites no existing file")
  func foreignFiles() async throws {
    let exports = try await exports()
    defer { for path in exports { try? FileManager.default.removeItem(atPath: path) } }
    let files = FileManager.default
    // These names resemble the remains of an interrupted export, but differ from them, so they must stay.
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

    let path = try makeDirectory(killedAt: .partOfNewMoved, [exports[1], exports[1]])
    defer { try? files.removeItem(atPath: path) }
    try Data([1]).write(to: URL(fileURLWithPath: "\(path)/firestore_export"))
    let error = await FirestoreTestServer.startError { $0.importedDirectory = path }
    #expect(
      error.contains("\(Self.id).new") && error.contains("/firestore_export: File exists"), "\(error)")
    #expect(try Data(contentsOf: URL(fileURLWithPath: "\(path)/firestore_export")) == Data([1]))
    try files.removeItem(atPath: "\(path)/firestore_export")
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) { server in
      try await expectFound(2, server)
    }
  }

  @Test("A directory to which another process exports is not changed")
  func lockedDirectory() async throws {
    let exports = try await exports()
    defer { for path in exports { try? FileManager.default.removeItem(atPath: path) } }
    let path = try makeDirectory(killedAt: .writing, exports)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let before = try names(path)
    let holder = open(path, O_RDONLY)
    try #require(flock(holder, LOCK_EX | LOCK_NB) == 0)
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) { server in
      try await expectFound(1, server)
      let rejected = try await server.export(path)
      #expect(
        rejected.json["message"].string?.hasPrefix("Another process is exporting to \(path).") == true,
        "\(rejected.body)")
      #expect(try names(path) == before)
      close(holder)
      #expect(try await server.export(path).status == 200)
    }
  }
}
