// Tests exports and imports of documents: round trips, and the rejection of damaged files. Export files are logs
// in LevelDB's format: blocks of 32 KiB with records, each after a header.

import BlockLog
import FirestoreModel
import FirestoreProtobuf
import Foundation
import HearthServer
import JSON
import RandomModels
import RealtimeModel
import Testing

@testable import EmulatorSuite
@testable import EndpointFixture

@Suite("Exports and imports", .timeLimit(.minutes(10)))
struct ExportTests {
  private static let database = DatabaseName(project: "demo-test", database: "(default)")
  private let admin = "/emulator/v1/projects/demo-test"

  private func json(_ members: [String: String]) -> String {
    var object = JSONObject()
    for (key, value) in members { object[key] = .string(value) }
    return String(decoding: JSONValue.object(object).json(), as: UTF8.self)
  }

  private func makeDirectory() throws -> String {
    let path = FirestoreTestServer.temporaryDirectory()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  private func load(_ server: FirestoreTestServer, _ path: String) async throws -> RESTReply {
    try await server.rest(
      "POST", "\(admin):import", json(["database": FirestoreTestServer.database, "export_directory": path]))
  }

  private func export(_ server: FirestoreTestServer, _ directory: String) async throws -> String {
    let body = json([
      "database": FirestoreTestServer.database, "export_directory": directory, "export_name": "n",
    ])
    let reply = try await server.rest("POST", "\(admin):export", body)
    #expect(reply.status == 200 && reply.body == "{}\n", "\(reply.body)")
    return "\(directory)/n/n.overall_export_metadata"
  }

  private func allDocuments(_ server: FirestoreTestServer) async throws -> [String] {
    let reply = try await server.rest(
      "POST", "/v1/\(FirestoreTestServer.documents):runQuery",
      "{\"structuredQuery\":{\"from\":[{\"allDescendants\":true}]}}")
    return reply.json.array?.compactMap { element -> String? in
      guard let name = element["document"]["name"].string else { return nil }
      return name + " " + String(decoding: element["document"]["fields"].value.json(), as: UTF8.self)
    } ?? []
  }

  @Test("Random documents survive an export and an import")
  func roundTrip() async throws {
    var random = RandomValues(seed: 3)
    for _ in 0..<400 {
      let name = random.documentName()
      var fields = MapValue()
      for index in 0..<3 { fields["f\(index)"] = random.value().stored }
      let entity = try ExportEntity(ExportEntity.encode(name, fields), into: name.database.project)
      #expect(entity.database == name.database.database)
      #expect(ResourcePath.compare(entity.path, name.path) == .same)
      // Compares the values as text, in which NaN equals NaN.
      #expect("\(entity.fields)" == "\(fields)")
    }
  }

  @Test("The sign of zero survives encoding and decoding")
  func zeros() throws {
    let zeros = [-0.0, 0.0, -0.0]
    let fields: MapValue = ["a": .array(zeros.map { .double($0) }), "d": .double(-0.0), "v": .vector(zeros)]
    let name = try #require(DocumentName(database: Self.database, path: ResourcePath(["c", "d"])))
    #expect(try ExportEntity(ExportEntity.encode(name, fields), into: "demo-test").fields == fields)
  }

  @Test("Entities have the official emulator's encoding")
  func bytes() throws {
    let name = DocumentName(database: Self.database, path: ResourcePath(["c", "__id7__", "d", "x"]))
    let entity = ExportEntity.encode(try #require(name), ["e": .array([]), "n": .array([1, .null])])
    let path = "0b1201631807" + "0c" + "0b120164220178" + "0c"
    let key = "6a0d" + Self.hex("dev~demo-test") + "72" + Self.length(path) + path
    let properties =
      "7209" + "0818" + "1a0165" + "2000" + "2a00" + "7a09" + "1a016e" + "2001" + "2a020801" + "7a07"
      + "1a016e"
      + "2001" + "2a00"
    let group = "8201" + "07" + "0b1201631807" + "0c"
    #expect(Self.hex(entity) == "6a" + Self.length(key) + key + properties + group)
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  private static func hex(_ text: String) -> String { hex(Array(text.utf8)) }

  private static func length(_ hexadecimal: String) -> String { hex([UInt8(hexadecimal.utf8.count / 2)]) }

  @Test("A database with small and large documents survives an export, a clear and an import")
  func exportAndImport() async throws {
    let directory = try makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await FirestoreTestServer.serving { server in
      let long = String(repeating: "x", count: 90_000)
      for batch in 0..<3 {
        try await server.client.commit(
          (0..<40).map {
            .set("c/\(batch)-\($0)/s/d", ["n": .int($0), "t": .text($0 % 4 == 0 ? long : "ä")])
          })
      }
      let before = try await allDocuments(server)
      #expect(before.count == 120)
      let metadata = try await export(server, directory)
      #expect(try await server.rest("DELETE", "/emulator/v1/" + FirestoreTestServer.documents).status == 200)
      try await server.client.commit([.set("kept/d", [:]), .set("c/0-0/s/d", ["n": .int(9)])])
      let loaded = try await load(server, metadata)
      #expect(loaded.status == 200, "\(loaded.body)")
      let after = try await allDocuments(server)
      #expect(after.filter { !$0.contains("/kept/") } == before && after.count == 121)
      // The second import changes nothing, not even update times.
      let time = try await server.client.get("c/0-1/s/d").updateTime
      #expect(try await load(server, metadata).status == 200)
      #expect(try await server.client.get("c/0-1/s/d").updateTime == time)
    }
  }

  @Test("An export with backslashes in its paths is imported")
  func backslashPaths() async throws {
    let directory = try makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await FirestoreTestServer.serving { server in
      try await server.client.commit([.set("c/a", ["n": .int(1)])])
      let metadata = try await export(server, directory)
      _ = try await server.rest("DELETE", "/emulator/v1/" + FirestoreTestServer.documents)
      // The official emulator's metadata file is a log of two records: a version, and the path of the only kind.
      let kind = Array("all_namespaces\\all_kinds\\all_namespaces_all_kinds.export_metadata".utf8)
      let named: [UInt8] = [0x12, UInt8(kind.count)] + kind
      var log = BlockLogWriter()
      let bytes = log.frame([0x33]) + log.frame([0x0A, UInt8(named.count)] + named)
      try Data(bytes).write(to: URL(fileURLWithPath: metadata))
      #expect(try await load(server, metadata).status == 200)
      #expect(try await allDocuments(server).count == 1)
    }
  }

  @Test("The export of an empty database is one file")
  func empty() async throws {
    let directory = try makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await FirestoreTestServer.serving { server in
      let metadata = try await export(server, directory)
      #expect(try FileManager.default.contentsOfDirectory(atPath: "\(directory)/n").count == 1)
      #expect(try await load(server, metadata).status == 200)
    }
  }

  @Test("A damaged export is rejected, and no part of the export is imported")
  func corruption() async throws {
    let directory = try makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await FirestoreTestServer.serving { server in
      try await server.client.commit((0..<9).map { .set("c/\($0)", ["n": .int($0)]) })
      let metadata = try await export(server, directory)
      _ = try await server.rest("DELETE", "/emulator/v1/" + FirestoreTestServer.documents)
      let output = URL(fileURLWithPath: "\(directory)/n/all_namespaces/all_kinds/output-0")
      let complete = try Data(contentsOf: output)
      var flipped = complete
      flipped[complete.count - 3] ^= 1
      for (bytes, message) in [
        (flipped, "Checksum doesn't validate."), (complete.dropLast(2), "Invalid record"),
        (Data("junk".utf8), "Invalid record"),
      ] {
        try bytes.write(to: output)
        let reply = try await load(server, metadata)
        let text = reply.error["message"].string ?? ""
        #expect(reply.status == 400 && text.hasPrefix(message + " (") && text.contains("output-0, at byte "))
        #expect(try await allDocuments(server).isEmpty)
      }
      try FileManager.default.removeItem(at: output)
      let missing = try await load(server, metadata)
      #expect(
        missing.status == 400
          && missing.error["message"].string?.hasPrefix("Failed parse entity file:") == true)
      try Data("nonsense".utf8).write(to: URL(fileURLWithPath: metadata))
      #expect(
        try await load(server, metadata).error["message"]
          == .string("Overall export metadata file version not supported"))
    }
  }

  @Test("Errors of exports and imports have the official emulator's texts")
  func errors() async throws {
    let directory = try makeDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await FirestoreTestServer.serving { server in
      let database = FirestoreTestServer.database
      let missing = try await server.rest(
        "POST", "\(admin):export", json(["database": database, "export_directory": "/none/at/all"]))
      #expect(missing.status == 400 && missing.error["status"] == .string("FAILED_PRECONDITION"))
      #expect(missing.error["message"] == .string("export_directory must be a directory"))
      for name in ["a/b", "..", "."] {
        let body = json(["database": database, "export_directory": directory, "export_name": name])
        #expect(try await server.rest("POST", "\(admin):export", body).status == 400)
      }
      let nothing = try await load(server, directory)
      #expect(nothing.error["message"] == .string("Failed to parse overall export metadata file"))
      #expect(try await server.rest("POST", "\(admin):import", "{\"x\":\"y\"}").status == 400)
      #expect(try await server.rest("POST", "\(admin):import", "").status == 400)
      let foreign = try await server.rest(
        "POST", "\(admin):import", json(["database": database, "export_directory": directory]),
        headers: ["Origin: https://evil.example"])
      #expect(foreign.status == 403)
    }
  }

  @Test("Records that end near the end of a block are read unchanged")
  func blocks() throws {
    for length in [0, 1, 32_754, 32_755, 32_761, 32_762, 70_000] {
      let records = [[UInt8](repeating: 1, count: length), [2], [], [UInt8](repeating: 3, count: 40_000)]
      var writer = BlockLogWriter()
      var rest = records.flatMap { writer.frame($0) }[...]
      #expect(rest.count == writer.count)
      var reader = BlockLogReader()
      var read: [[UInt8]] = []
      while let record = try reader.next({ count in
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
      }) { read.append(record) }
      #expect(read == records && reader.position == writer.count)
    }
  }

  @Test("After its last record a log may have only padding, shorter than a header", arguments: 0...8)
  func endOfBlock(room: Int) throws {
    var writer = BlockLogWriter()
    let record = [UInt8](
      repeating: 1, count: BlockLogFormat.blockBytes - BlockLogFormat.headerBytes - room)
    let bytes = writer.frame(record)
    for paddingBytes in 0...min(room, BlockLogFormat.headerBytes - 1) {
      var rest = (bytes + [UInt8](repeating: 0, count: paddingBytes))[...]
      var reader = BlockLogReader()
      func next() throws -> [UInt8]? {
        try reader.next { count in
          defer { rest = rest.dropFirst(count) }
          return Array(rest.prefix(count))
        }
      }
      #expect(try next() == record)
      // If the block has room for a header, fewer bytes than a header are a truncated header. Otherwise they are
      // padding.
      if room >= BlockLogFormat.headerBytes, paddingBytes > 0 {
        #expect(throws: BlockLogReader.Damage.truncated) { try next() }
      } else {
        #expect(try next() == nil)
      }
    }
  }

  @Test("The checksum is CRC-32C")
  func checksum() {
    // The CRC-32C of "123456789" is 0xE3069283; LevelDB masks it.
    let crc: UInt32 = 0xE306_9283
    let masked = (crc >> 15 | crc << 17) &+ 0xA282_EAD8
    #expect(Array("123456789".utf8).withUnsafeBytes { CRC32C.masked($0) } == masked)
  }
}
