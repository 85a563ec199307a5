// Tests bloom filters with the published vectors and the published example.

import FirestoreModel
import Foundation
import Testing

@Suite("Bloom filter", .timeLimit(.minutes(10)))
struct BloomFilterTests {
  static func name(_ id: String) throws -> DocumentName {
    try DocumentName(parsing: "projects/demo-books/databases/(default)/documents/books/\(id)")
  }

  @Test(
    "Membership agrees with every published vector",
    .enabled(if: ConformanceVectors.areAvailable, "HEARTH_CONFORMANCE is not set"))
  func vectors() throws {
    let files = try ConformanceVectors.files(in: "bloom-filter")
    // A vector is a pair of files whose names differ only in their ending.
    var vectors: [String: (filter: URL?, result: URL?)] = [:]
    for file in files {
      let object = try ConformanceVectors.object(at: file)
      let stem = file.lastPathComponent.replacingOccurrences(
        of: #"_(bloom_filter_proto|membership_test_result)\.json$"#, with: "", options: .regularExpression)
      if object["membershipTestResults"] != nil {
        vectors[stem, default: (nil, nil)].result = file
      } else {
        vectors[stem, default: (nil, nil)].filter = file
      }
    }
    var run = 0
    var passed = 0
    var names = 0
    for (stem, pair) in vectors {
      let filterFile = try #require(pair.filter, "\(stem) has no filter")
      let resultFile = try #require(pair.result, "\(stem) has no result")
      let object = try ConformanceVectors.object(at: filterFile)
      let result = try ConformanceVectors.object(at: resultFile)
      let results = try #require(result["membershipTestResults"] as? String)
      let bits = try #require(object["bits"] as? [String: Any])
      let bitmap = try #require(Data(base64Encoded: bits["bitmap"] as? String ?? ""))
      let filter = try #require(
        BloomFilter(
          bitmap: [UInt8](bitmap), padding: bits["padding"] as? Int ?? 0,
          hashCount: object["hashCount"] as? Int ?? 0))
      var wrong = 0
      for (index, expected) in results.utf8.enumerated() {
        let name = "projects/project-1/databases/database-1/documents/coll/doc\(index)"
        names += 1
        if filter.mightContain(name) != (expected == UInt8(ascii: "1")) { wrong += 1 }
      }
      run += 1
      passed += wrong == 0 ? 1 : 0
      #expect(wrong == 0, "\(stem): wrong about \(wrong) names")
    }
    print("bloom filter vectors: \(run) run with \(names) names, \(passed) passed, 0 skipped")
    #expect(run > 0)
  }

  @Test("The filter of the published example has the published bits")
  func example() throws {
    var filter = try #require(
      BloomFilter(bitmap: [UInt8](repeating: 0, count: 8), padding: 6, hashCount: 7))
    for id in ["b1", "b2", "b3"] { filter.insert(try Self.name(id).description) }
    #expect(filter.bitmap == [0xA4, 0x6A, 0x30, 0xA4, 0x18, 0x00, 0x8E, 0x02])
    #expect(filter.mightContain(try Self.name("b2").description))
    #expect(!filter.mightContain(try Self.name("b4").description))
  }

  @Test("Every inserted name is contained, and false positives are rare")
  func insertedNames() throws {
    for count in [1, 7, 100, 1000] {
      let names = try (0..<count).map { try Self.name("d\($0)") }
      let filter = BloomFilter(names)
      #expect(names.allSatisfy { filter.mightContain($0.description) })
      var falsePositives = 0
      for otherID in 0..<2000 where filter.mightContain(try Self.name("x\(otherID)").description) {
        falsePositives += 1
      }
      #expect(falsePositives <= 4, "\(count) names")
      #expect(filter.padding >= 0 && filter.padding < 8)
    }
  }

  @Test("The empty filter contains nothing; an inconsistent bitmap, padding or hash count is rejected")
  func inconsistentNumbers() {
    #expect(!BloomFilter([DocumentName]()).mightContain("x"))
    #expect(BloomFilter(bitmap: [], padding: 0, hashCount: 0) != nil)
    #expect(BloomFilter(bitmap: [], padding: 1, hashCount: 0) == nil)
    #expect(BloomFilter(bitmap: [1], padding: 8, hashCount: 1) == nil)
    #expect(BloomFilter(bitmap: [1], padding: -1, hashCount: 1) == nil)
    #expect(BloomFilter(bitmap: [1], padding: 0, hashCount: 0) == nil)
    #expect(BloomFilter(bitmap: [1], padding: 0, hashCount: -1) == nil)
  }
}
