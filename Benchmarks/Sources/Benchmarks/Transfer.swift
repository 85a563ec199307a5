// Transfer of complete databases as JSON over REST.

import Foundation
import NIOCore

/// Megabytes per second of an import, and the server's peak memory above the memory before, in megabytes.
func importRate(_ setting: Setting, megabytes: Int) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  let before = try server.residentBytes()
  let start = ContinuousClock.now
  try await importRecords(server, megabytes: megabytes, setting)
  let rate = Double(megabytes) / (ContinuousClock.now - start).seconds
  return [rate, Double(try server.peakBytes() - before) / 1e6]
}

/// Megabytes per second of an export, and the server's peak memory above the memory before, in megabytes.
func exportRate(_ setting: Setting, megabytes: Int) async throws -> [Double] {
  let directory = try await loadedJSONDirectory(setting, megabytes: megabytes)
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  let before = try server.residentBytes()
  let start = ContinuousClock.now
  let answer = try await HTTPTransfer.get(
    "/data.json?ns=bench&format=export", port: server.port, on: setting.group)
  let rate = Double(answer.bytes) / 1e6 / (ContinuousClock.now - start).seconds
  guard answer.status == 200, answer.bytes > megabytes << 19 else {
    throw BenchmarkFailure("the export answered \(answer.status) with \(answer.bytes) bytes")
  }
  return [rate, Double(try server.peakBytes() - before) / 1e6]
}

/// The directory of a database with a given amount of JSON, loaded if no other measurement has done so.
func loadedJSONDirectory(_ setting: Setting, megabytes: Int) async throws -> String {
  try await setting.databases.directory("realtime-\(megabytes)", setting) { directory in
    let server = try setting.startHearth(["--data", directory], database: true)
    defer { server.stop() }
    try await importRecords(server, megabytes: megabytes, setting)
  }
}

private func importRecords(_ server: ChildProcess, megabytes: Int, _ setting: Setting) async throws {
  let records = JSONRecords(megabytes: megabytes)
  let status = try await HTTPTransfer.put(
    "/data.json?ns=bench&print=silent&writeSizeLimit=unlimited", port: server.port, on: setting.group,
    pieces: records)
  guard status == 204 else { throw BenchmarkFailure("the import answered \(status)") }
}

/// The JSON of many records in groups of a thousand, in chunks.
struct JSONRecords: Sequence, IteratorProtocol {
  private static let text = String(repeating: "What is written here takes space. ", count: 4)
  private static let recordBytes = 205
  private static let pieceBytes = 256 << 10

  private let count: Int
  private var nextNumber = 0

  init(megabytes: Int) { count = JSONRecords.count(megabytes: megabytes) }

  static func count(megabytes: Int) -> Int { (megabytes << 20) / recordBytes }

  /// The path of a record.
  static func path(_ number: Int) -> String { "g\(number / 1000)/r\(number)" }

  mutating func next() -> ByteBuffer? {
    guard nextNumber <= count else { return nil }
    var text = ""
    text.reserveCapacity(JSONRecords.pieceBytes + 1024)
    while nextNumber < count, text.utf8.count < JSONRecords.pieceBytes {
      let number = nextNumber
      if number % 1000 == 0 { text += number == 0 ? "{" : "}," }
      if number % 1000 == 0 { text += "\"g\(number / 1000)\":{" } else { text += "," }
      text +=
        #""r\#(number)":{"name":"record \#(number)","score":\#(number % 997),"text":"\#(JSONRecords.text)"}"#
      nextNumber += 1
    }
    if nextNumber == count {
      text += count == 0 ? "null" : "}}"
      nextNumber += 1
    }
    return ByteBuffer(string: text)
  }
}
