// The storage engine alone: the minimal work of an index query, a scan of index entries with a get for each.

import CRocksDB
import Foundation

extension BareEngine {
  /// Scans of 100 index entries with a get for each, per second. Tables have the server's options.
  static func queriesPerSecond(directory: String, documents: Int, seconds: Double) throws -> Double {
    var failure: UnsafeMutablePointer<CChar>?
    let options = rocksdb_options_create()
    defer { rocksdb_options_destroy(options) }
    let cache = rocksdb_cache_create_lru(256 << 20)
    defer { rocksdb_cache_destroy(cache) }
    let tableOptions = rocksdb_block_based_options_create()
    defer { rocksdb_block_based_options_destroy(tableOptions) }
    rocksdb_block_based_options_set_block_cache(tableOptions, cache)
    rocksdb_block_based_options_set_block_size(tableOptions, 8 << 10)
    rocksdb_block_based_options_set_filter_policy(tableOptions, rocksdb_filterpolicy_create_bloom_full(10))
    rocksdb_options_set_create_if_missing(options, 1)
    rocksdb_options_set_compression(options, Int32(rocksdb_lz4_compression))
    rocksdb_options_set_block_based_table_factory(options, tableOptions)
    guard let database = rocksdb_open(options, directory, &failure) else {
      throw BenchmarkFailure("cannot open \(directory): \(failure.map { String(cString: $0) } ?? "unknown")")
    }
    defer { rocksdb_close(database) }
    try fill(database, documents: documents)

    let readOptions = rocksdb_readoptions_create()
    defer { rocksdb_readoptions_destroy(readOptions) }
    rocksdb_set_perf_level(1)
    let owners = documents / perOwner
    var queries = 0
    var bytes = 0
    let start = ContinuousClock.now
    var elapsed = 0.0
    while elapsed < seconds {
      let iterator = rocksdb_create_iterator(database, readOptions)
      defer { rocksdb_iter_destroy(iterator) }
      let prefix = entry(owner: queries * 7919 % owners, number: nil)
      prefix.withUnsafeBytes { rocksdb_iter_seek(iterator, characters($0), $0.count) }
      for _ in 0..<perOwner {
        guard rocksdb_iter_valid(iterator) != 0 else { throw BenchmarkFailure("the index has lost entries") }
        var size = 0
        // An entry ends with its document's key.
        guard let key = rocksdb_iter_key(iterator, &size), size > keyBytes,
          let value = rocksdb_get_pinned(database, readOptions, key + (size - keyBytes), keyBytes, &failure)
        else { throw BenchmarkFailure("an entry has no document") }
        var length = 0
        if rocksdb_pinnableslice_value(value, &length) != nil { bytes += length }
        rocksdb_pinnableslice_destroy(value)
        rocksdb_iter_next(iterator)
      }
      queries += 1
      elapsed = (ContinuousClock.now - start).seconds
    }
    guard bytes == queries * perOwner * valueBytes else { throw BenchmarkFailure("documents are missing") }
    return Double(queries) / elapsed
  }

  private static let perOwner = BulkRequests.perOwner
  private static let keyBytes = 60
  private static let valueBytes = 300

  private static func fill(_ database: OpaquePointer, documents: Int) throws {
    var failure: UnsafeMutablePointer<CChar>?
    let writeOptions = rocksdb_writeoptions_create()
    defer { rocksdb_writeoptions_destroy(writeOptions) }
    let batch = rocksdb_writebatch_create()
    defer { rocksdb_writebatch_destroy(batch) }
    let document = [UInt8](repeating: 7, count: valueBytes)
    for number in 0..<documents {
      put(batch, key: key(space: 0, number, bytes: keyBytes), value: document)
      put(batch, key: entry(owner: number % (documents / perOwner), number: number), value: [])
      for field in 2...8 { put(batch, key: key(space: UInt8(field), number, bytes: 80), value: []) }
      if number % 500 == 499 || number == documents - 1 {
        rocksdb_write(database, writeOptions, batch, &failure)
        rocksdb_writebatch_clear(batch)
      }
      if let failure { throw BenchmarkFailure(String(cString: failure)) }
    }
    let flushOptions = rocksdb_flushoptions_create()
    defer { rocksdb_flushoptions_destroy(flushOptions) }
    rocksdb_flush(database, flushOptions, &failure)
    if let failure { throw BenchmarkFailure(String(cString: failure)) }
  }

  /// An index entry (key space, owner, document key), or the prefix of an owner's entries.
  private static func entry(owner: Int, number: Int?) -> [UInt8] {
    var entry = [UInt8](repeating: 0x61, count: 20)
    entry[0] = 1
    for i in 0..<8 { entry[1 + i] = UInt8(truncatingIfNeeded: owner >> (56 - 8 * i)) }
    return entry + (number.map { key(space: 0, $0, bytes: keyBytes) } ?? [])
  }

  private static func characters(_ bytes: UnsafeRawBufferPointer) -> UnsafePointer<CChar>? {
    bytes.bindMemory(to: CChar.self).baseAddress
  }
}
