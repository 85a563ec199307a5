// Tests imports of malicious exports. Each import is rejected with a reason, and reads nothing outside of the
// export's directory.

import BlockLog
import FirestoreProtobuf
import Foundation
import HearthServer
import Testing

@testable import EmulatorSuite
@testable import EndpointFixture

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

@Suite("Hostile imports", .timeLimit(.minutes(5)))
struct HostileImportTests {
  private static let manifest = "firebase-export-metadata.json"
  private static let metadata = "firestore_export/firestore_export.overall_export_metadata"
  private static let kinds = "firestore_export/all_namespaces/all_kinds"
  private static let kind = "\(kinds)/all_namespaces_all_kinds.export_metadata"
  private static let output = "\(kinds)/output-0"

  /// Runs a test with an export of the data that `fill` writes, and with a copy of the export in another
  /// directory.
  private func withExport(_ body: (_ path: String, _ outsideDirectory: String) async throws -> Void)
    async throws
  {
    let path = FirestoreTestServer.temporaryDirectory()
    let outsideDirectory = path + "-outsideDirectory"
    defer { for path in [path, outsideDirectory] { try? FileManager.default.removeItem(atPath: path) } }
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      #expect(try await server.export(path).status == 200)
    }
    try FileManager.default.copyItem(atPath: path, toPath: outsideDirectory)
    try await body(path, outsideDirectory)
  }

  private func write(_ text: String, _ path: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
  }

  /// Expects that a modified copy of an export is rejected, and that the error contains a text.
  private func expectRejection(
    _ path: String, _ expectedText: String, _ change: (_ copy: String) throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let copy = path + "-copy"
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    defer { try? FileManager.default.removeItem(atPath: copy) }
    try change(copy)
    let error = await FirestoreTestServer.startError { $0.importedDirectory = copy }
    #expect(error.contains(expectedText), "\(error)", sourceLocation: sourceLocation)
  }

  @Test("A manifest with paths outside of the export, missing files or other types is rejected")
  func manifests() async throws {
    try await withExport { path, outsideDirectory in
      let outside = "outside of its directory"
      let name = outsideDirectory.split(separator: "/").last ?? ""
      func makeManifests(_ value: String) -> [String] {
        [
          #"{"firestore":{"metadata_file":\#(value)}}"#, #"{"database":{"path":\#(value)}}"#,
          #"{"hearth":{"databases":[{"database":"projects/p/databases/d","metadata_file":\#(value)}]}}"#,
        ]
      }
      var cases: [(manifests: [String], expectedText: String)] = [
        (makeManifests("\"\(outsideDirectory)/\(Self.metadata)\""), outside),
        (makeManifests("\"../\(name)/\(Self.metadata)\""), outside),
        (makeManifests("\"firestore_export/../../\(name)\""), outside), (makeManifests(#""..""#), outside),
        (makeManifests(#""x\u0000y""#), outside), (makeManifests(#""none""#), "No such file or directory"),
        (makeManifests("\"\(String(repeating: "x", count: 5000))\""), "File name too long"),
      ]
      for value in ["7", "-9223372036854775809", "1e308", "-1", "{}", "[]", "null", "true", #""""#] {
        cases.append((makeManifests(value), "where it must be a string"))
      }
      cases += [
        (
          ["", "[]", "7", "null", "{\"firestore\":", #"{"firestore":{"metadata_file":1e999}}"#],
          "no JSON object"
        ),
        (
          [String(repeating: "[", count: 500_000), String(repeating: "{\"a\":", count: 200_000)],
          "no JSON object"
        ),
        ([#"{"hearth":{"databases":{}}}"#, #"{"hearth":{"databases":-1}}"#], "must be an array"),
        ([#"{"hearth":{"databases":[7]}}"#, #"{"hearth":{"databases":[null]}}"#], "names no database"),
        ([#"{"hearth":{"databases":[{"database":"../x","metadata_file":"\#(Self.metadata)"}]}}"#], "../x"),
        (
          [
            #"{"firestore":{"metadata_file":"\#(Self.metadata)"},"hearth":{"databases":[{"#
              + #""database":"projects/p/databases/d","metadata_file":"./\#(Self.metadata)"}]}}"#
          ], "for more than one database"
        ),
      ]
      for (manifests, word) in cases {
        for manifest in manifests {
          try await expectRejection(path, word) { copy in try write(manifest, "\(copy)/\(Self.manifest)") }
        }
      }
    }
  }

  @Test("Symbolic links are followed only inside the export")
  func links() async throws {
    try await withExport { path, outsideDirectory in
      let files = FileManager.default
      let parts = [
        Self.manifest, "firestore_export", Self.metadata, "firestore_export/all_namespaces", Self.kind,
        Self.output,
        "database_export", "database_export/other.json", "other_databases",
      ]
      for part in parts {
        for target in ["\(outsideDirectory)/\(part)", "/dev/zero"] {
          // A path below a device is reported as a path below something that is not a directory.
          let isParentDirectory = ["firestore_export", "firestore_export/all_namespaces", "other_databases"]
            .contains(
              part)
          let word =
            isParentDirectory && target == "/dev/zero" ? "Not a directory" : "outside of its directory"
          try await expectRejection(path, word) { copy in
            try files.removeItem(atPath: "\(copy)/\(part)")
            try files.createSymbolicLink(atPath: "\(copy)/\(part)", withDestinationPath: target)
          }
        }
        let loop = part == Self.output ? "Failed parse entity file" : "Too many levels of symbolic links"
        try await expectRejection(path, loop) { copy in
          try files.removeItem(atPath: "\(copy)/\(part)")
          try files.createSymbolicLink(atPath: "\(copy)/\(part)", withDestinationPath: "\(copy)/\(part)")
        }
      }
      // The imported path is a symbolic link to the export, and two parts of the export are links within it.
      let link = path + "-link"
      defer { try? files.removeItem(atPath: link) }
      try files.createSymbolicLink(atPath: link, withDestinationPath: path)
      for part in ["firestore_export", "database_export/other.json"] {
        try files.moveItem(atPath: "\(path)/\(part)", toPath: "\(path)/moved-\(part.count)")
        try files.createSymbolicLink(
          atPath: "\(path)/\(part)", withDestinationPath: "\(path)/moved-\(part.count)")
      }
      try await FirestoreTestServer.servingSuite({ $0.importedDirectory = link }) { server in
        try await server.expectFilled()
      }
    }
  }

  @Test("Pipes and directories are not read as files, and every file has a size limit")
  func kindsOfFiles() async throws {
    try await withExport { path, _ in
      let files: [(name: String, pipe: String, directory: String, gigantic: String)] = [
        (Self.manifest, "cannot read", "Is a directory", "File too large"),
        (Self.metadata, "Failed to parse overall", "Failed to parse overall", "Failed to parse overall"),
        (Self.kind, "cannot read", "Is a directory", "File too large"),
        (Self.output, "Failed parse entity file", "Failed parse entity file", "Invalid record"),
        ("database_export/other.json", "cannot read", "Is a directory", "other.json cannot be imported"),
      ]
      for file in files {
        for (word, make) in [
          (file.pipe, { #expect(mkfifo($0, 0o600) == 0) }),
          (file.directory, { #expect(mkdir($0, 0o700) == 0) }),
          (
            file.gigantic,
            {
              #expect(FileManager.default.createFile(atPath: $0, contents: nil) && truncate($0, 1 << 40) == 0)
            }
          ),
        ] as [(String, (String) -> Void)] {
          try await expectRejection(path, word) { copy in
            try FileManager.default.removeItem(atPath: "\(copy)/\(file.name)")
            make("\(copy)/\(file.name)")
          }
        }
      }
    }
  }

  @Test(
    "Metadata that names files outside of the export is rejected, and a file named repeatedly is imported once"
  )
  func entityFiles() async throws {
    try await withExport { path, outsideDirectory in
      func metadata(_ kinds: [String]) -> Data {
        var log = BlockLogWriter()
        let record = kinds.flatMap { Self.field(1, Self.field(2, Array($0.utf8))) }
        return Data(log.frame([ExportMetadata.version]) + log.frame(record))
      }
      let name = "all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata"
      for kind in [
        "../../\(outsideDirectory)/\(Self.kind)", "\(outsideDirectory)/\(Self.kind)", "..\\..\\etc", "..",
      ] {
        try await expectRejection(path, "outside of its directory") { copy in
          try metadata([kind]).write(to: URL(fileURLWithPath: "\(copy)/\(Self.metadata)"))
        }
      }
      for output in [
        "../../../../\(outsideDirectory)/\(Self.output)", "\(outsideDirectory)/\(Self.output)", "..",
      ] {
        try await expectRejection(path, "outside of its directory") { copy in
          try Data(Self.field(2, Self.field(2, Array(output.utf8)))).write(
            to: URL(fileURLWithPath: "\(copy)/\(Self.kind)"))
        }
      }
      // A length beyond the end, and an invalid length.
      for bytes in [[0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x07], [0x0A] + [UInt8](repeating: 0xFF, count: 11)]
        as [[UInt8]]
      {
        var log = BlockLogWriter()
        let overall = Data(log.frame([ExportMetadata.version]) + log.frame(bytes))
        try await expectRejection(path, " (--import)") { copy in
          try overall.write(to: URL(fileURLWithPath: "\(copy)/\(Self.metadata)"))
        }
      }
      // If the file were read for each name, the test would exceed its time limit.
      try metadata([String](repeating: name, count: 2000)).write(
        to: URL(fileURLWithPath: "\(path)/\(Self.metadata)"))
      try Data(
        [UInt8](repeating: 0, count: 100_000).flatMap { _ in
          Self.field(2, Self.field(2, Array("output-0".utf8)))
        }
      )
      .write(to: URL(fileURLWithPath: "\(path)/\(Self.kind)"))
      try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) { server in
        try await server.expectFilled()
      }
    }
  }

  /// A protobuf field with bytes, whose length takes one or two bytes.
  private static func field(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] {
    let count = bytes.count
    let length = count < 128 ? [UInt8(count)] : [UInt8(count & 127) | 128, UInt8(count >> 7)]
    return [number << 3 | 2] + length + bytes
  }
}
