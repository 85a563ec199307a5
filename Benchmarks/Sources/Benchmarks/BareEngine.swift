// The storage engine alone: batches of 100 documents written to RocksDB through its C API, each batch synced. A
// document has the rows that the server writes for it: the document row, eight index entries, a log record, and
// an undo row if it is overwritten.

import CRocksDB
import Foundation

enum BareEngine {
  /// Durable documents per second, over `seconds`.
  static func documentsPerSecond(directory: String, seconds: Double) throws -> Double {
    var failure: UnsafeMutablePointer<CChar>?
    let options = rocksdb_options_create()
    defer { rocksdb_options_destroy(options) }
    rocksdb_options_set_create_if_missing(options, 1)
    rocksdb_options_set_write_buffer_size(options, 16 << 20)
    guard let database = rocksdb_open(options, directory, &failure) else {
      throw BenchmarkFailure("cannot open \(directory): \(failure.map { String(cString: $0) } ?? "unknown")")
    }
    defer { rocksdb_close(database) }
    let writeOptions = rocksdb_writeoptions_create()
    defer { rocksdb_writeoptions_destroy(writeOptions) }
    rocksdb_writeoptions_set_sync(writeOptions, 1)
    let batch = rocksdb_writebatch_create()
    defer { rocksdb_writebatch_destroy(batch) }

    let document = [UInt8](repeating: 7, count: 300)
    let logRecord = [UInt8](repeating: 9, count: 340)
    var written = 0
    let start = ContinuousClock.now
    var elapsed = 0.0
    while elapsed < seconds {
      rocksdb_writebatch_clear(batch)
      for _ in 0..<100 {
        put(batch, key: key(space: 0, written, bytes: 60), value: document)
        for field in 1...8 { put(batch, key: key(space: UInt8(field), written, bytes: 80), value: []) }
        put(batch, key: key(space: 9, written, bytes: 16), value: logRecord)
        written += 1
      }
      rocksdb_write(database, writeOptions, batch, &failure)
      if let failure { throw BenchmarkFailure(String(cString: failure)) }
      elapsed = (ContinuousClock.now - start).seconds
    }
    return Double(written) / elapsed
  }

  /// The time until each append of a steady sequence is synced, in microseconds.
  static func appendTimes(directory: String, seconds: Double, perSecond: Int) throws -> [Double] {
    var failure: UnsafeMutablePointer<CChar>?
    let options = rocksdb_options_create()
    defer { rocksdb_options_destroy(options) }
    rocksdb_options_set_create_if_missing(options, 1)
    guard let database = rocksdb_open(options, directory, &failure) else {
      throw BenchmarkFailure("cannot open \(directory): \(failure.map { String(cString: $0) } ?? "unknown")")
    }
    defer { rocksdb_close(database) }
    let writeOptions = rocksdb_writeoptions_create()
    defer { rocksdb_writeoptions_destroy(writeOptions) }
    rocksdb_writeoptions_set_sync(writeOptions, 1)
    let batch = rocksdb_writebatch_create()
    defer { rocksdb_writebatch_destroy(batch) }
    var times: [Double] = []
    let start = ContinuousClock.now
    while true {
      let due = start + .seconds(Double(times.count) / Double(perSecond))
      guard (due - start).seconds < seconds else { return times }
      let early = (due - ContinuousClock.now).seconds
      if early > 0 { Thread.sleep(forTimeInterval: early) }
      let before = ContinuousClock.now
      rocksdb_writebatch_clear(batch)
      put(batch, key: key(space: 9, times.count, bytes: 16), value: [UInt8](repeating: 9, count: 120))
      rocksdb_write(database, writeOptions, batch, &failure)
      if let failure { throw BenchmarkFailure(String(cString: failure)) }
      times.append((ContinuousClock.now - before).seconds * 1e6)
    }
  }

  static func put(_ batch: OpaquePointer?, key: [UInt8], value: [UInt8]) {
    key.withUnsafeBytes { k in
      value.withUnsafeBytes { v in
        rocksdb_writebatch_put(
          batch, k.bindMemory(to: CChar.self).baseAddress, k.count, v.bindMemory(to: CChar.self).baseAddress,
          v.count)
      }
    }
  }

  /// A key of the given size: key space, a scrambled number (index entries arrive out of order), padding.
  static func key(space: UInt8, _ number: Int, bytes: Int) -> [UInt8] {
    var key = [UInt8](repeating: 0x61, count: bytes)
    key[0] = space
    let scrambled = space == 9 ? UInt64(number) : UInt64(number) &* 0x9E37_79B9_7F4A_7C15
    for i in 0..<8 { key[1 + i] = UInt8(truncatingIfNeeded: scrambled >> UInt64(56 - 8 * i)) }
    return key
  }
}

struct BenchmarkFailure: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}

extension Duration {
  var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
