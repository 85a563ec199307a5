// Tests which records after a damaged record a log scan counts as acknowledged writes.

import BlockLog
import Foundation
import Testing

@testable import EmbeddedStore

@Suite("Scan of a write-ahead log")
struct LogScanTests {
  /// A complete record in one fragment.
  private func record(sequence: UInt8, changes: UInt8) -> [UInt8] {
    let payload: [UInt8] = [sequence] + Array(repeating: 0, count: 7) + [changes, 0, 0, 0] + [1, 2, 3]
    let covered: [UInt8] = [1] + payload
    let checksum = covered.withUnsafeBytes { CRC32C.masked($0) }
    return (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * UInt32($0))) } + [
      UInt8(payload.count), 0,
    ] + covered
  }

  private func scan(_ bytes: [UInt8]) throws -> LogScan {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(FileManager.default.createFile(atPath: path, contents: Data(bytes)))
    return try LogScan(path)
  }

  @Test("A record without changes, which RocksDB writes after a recovery, does not count as acknowledged")
  func recordWithoutChanges() throws {
    let torn = Array(record(sequence: 9, changes: 1).dropLast(6)) + [0, 0, 0, 0, 0, 0]
    #expect(
      try scan(record(sequence: 5, changes: 1) + torn + record(sequence: 9, changes: 0)).newestAfterDamage
        == nil)
    #expect(try scan(record(sequence: 9, changes: 0)).newest == nil)
    let scanned = try scan(record(sequence: 9, changes: 0) + record(sequence: 9, changes: 2))
    #expect(scanned.newest == 9 && scanned.first == 9 && scanned.damage == nil)
  }

  @Test("A complete record with changes after a damaged record counts as acknowledged")
  func recordAfterDamage() throws {
    let damaged = Array(record(sequence: 9, changes: 1).dropLast(1)) + [0xFF]
    let scanned = try scan(record(sequence: 5, changes: 1) + damaged + record(sequence: 11, changes: 1))
    #expect(scanned.newestAfterDamage == 11 && scanned.newest == 11 && scanned.first == 5)
  }
}
