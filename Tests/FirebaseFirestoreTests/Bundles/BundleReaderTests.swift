// Tests the bundle reader, decoder and loader: chunks that end anywhere, both JSON dialects, and corrupt or
// foreign files.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

@Suite("Bundle reader", .timeLimit(.minutes(10))) struct BundleReaderTests {
  static let database = DatabaseName(project: "demo-sdk")

  private func load(_ chunks: [Data]) throws(FirestoreError) -> FirebaseFirestore.Bundle {
    var loader = BundleLoader(database: BundleReaderTests.database)
    for chunk in chunks {
      loader.append(chunk)
      while try loader.step() {}
    }
    return try loader.finish()
  }

  private func example(_ dialect: BundleFile.Dialect = .plain) -> BundleFile {
    var file = BundleFile(dialect: dialect)
    file.addQuery(
      "best",
      [
        "from": [["collectionId": "books"]],
        "where": [
          "fieldFilter": [
            "field": ["fieldPath": "at"], "op": "GREATER_THAN", "value": ["timestampValue": file.time(5)],
          ]
        ], "orderBy": [["field": ["fieldPath": "at"], "direction": "ASCENDING"]],
        "limit": dialect == .plain ? 2 as Any : ["value": 2],
      ], limitType: "LAST", at: 20)
    file.add(
      "books/dune",
      [
        "title": ["stringValue": "Düne {1}"], "pages": ["integerValue": "412"],
        "at": ["timestampValue": file.time(9.5)],
        "rating": ["doubleValue": 4.5], "raw": ["bytesValue": "AQID"], "none": ["nullValue": NSNull()],
        "where": ["geoPointValue": ["latitude": 1.5, "longitude": -2]],
        "self": ["referenceValue": file.name("books/dune")],
        "tags": ["arrayValue": ["values": [["stringValue": "sf"], ["booleanValue": true]]]],
        // Field names that have a meaning elsewhere in a bundle.
        "map": ["mapValue": ["fields": ["limit": ["integerValue": "1"], "fields": ["stringValue": "x"]]]],
        "v": [
          "mapValue": [
            "fields": [
              "__type__": ["stringValue": "__vector__"],
              "value": ["arrayValue": ["values": [["doubleValue": 1], ["doubleValue": 2.5]]]],
            ]
          ]
        ],
      ], at: 10, queries: ["best"])
    file.add("books/gone", nil, at: 11)
    return file
  }

  @Test("every element of a bundle is parsed", arguments: BundleFile.Dialect.allCases)
  func parsesEveryElement(dialect: BundleFile.Dialect) throws {
    let bundle = try load([example(dialect).data])
    #expect(bundle.metadata.id == "bundle" && bundle.metadata.totalDocuments == 2)
    #expect(bundle.metadata.createTime == .init(seconds: 1_000_000))
    let name = try DocumentName(parsing: example().name("books/dune"))
    let dune = try #require(bundle.documents[name])
    let fields: MapValue = [
      "title": "Düne {1}", "pages": 412, "at": .timestamp(.init(seconds: 9, nanoseconds: 500_000_000)),
      "rating": 4.5, "raw": .bytes([1, 2, 3]), "none": .null,
      "where": .geoPoint(.init(latitude: 1.5, longitude: -2)), "self": .reference(name),
      "tags": ["sf", true],
      "map": ["limit": 1, "fields": "x"], "v": .vector([1, 2.5]),
    ]
    #expect(dune.fields == fields)
    #expect(dune.version == .init(seconds: 10) && dune.readTime == .init(seconds: 10))
    let missing = bundle.documents.values.first { $0.isMissing }
    #expect(missing?.name.id == "gone" && missing?.version == .init(seconds: 11))
    let query = try #require(bundle.queries.first)
    #expect(query.name == "best" && query.isLimitToLast && query.query.structured.limit == 2)
    let filter = FieldFilter(.init(field: "at"), .greaterThan, .timestamp(.init(seconds: 5)))
    #expect(query.query.structured.filter == .field(filter))
    #expect(bundle.documentsOfQuery == ["best": [name]])
  }

  @Test("chunks may end anywhere")
  func chunkBoundaries() throws {
    let data = example().data
    let expected = try load([data])
    var random = SplitMix(seed: 3)
    for round in 0..<60 {
      var chunks: [Data] = []
      var rest = data
      while !rest.isEmpty {
        let size = round == 0 ? 1 : min(Int.random(in: 1...200, using: &random), rest.count)
        chunks.append(Data(rest.prefix(size)))
        rest = Data(rest.dropFirst(size))
      }
      #expect(try load(chunks) == expected)
    }
  }

  @Test("a truncated bundle is rejected")
  func truncatedBundle() {
    let data = example().data
    for count in 0..<data.count {
      #expect(throws: FirestoreError.self) { try load([Data(data.prefix(count))]) }
    }
  }

  @Test("corrupt bytes give an error or another bundle, and never trap")
  func corruptBytes() {
    var random = SplitMix(seed: 4)
    let data = example().data
    for _ in 0..<1500 {
      var bytes = [UInt8](data)
      for _ in 0...Int.random(in: 0..<4, using: &random) {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        bytes[index] = UInt8.random(in: 0...255, using: &random)
      }
      do { _ = try load([Data(bytes)]) } catch { #expect(!error.message.isEmpty) }
    }
  }

  /// Invalid files, with the expected code and a substring of the expected message.
  private func invalidFiles() -> [(Data, StatusCode, String)] {
    func file(_ change: (inout BundleFile) -> Void) -> Data {
      var file = BundleFile()
      change(&file)
      return file.data
    }
    let query: BundleFile.JSON = ["from": [["collectionId": "books"]]]
    func withQuery(_ more: BundleFile.JSON, limitType: String? = nil) -> Data {
      file { $0.addQuery("q", query.merging(more) { $1 }, limitType: limitType, at: 1) }
    }
    let deep = String(repeating: "[", count: 100_000)
    var nested: BundleFile.JSON = ["nullValue": NSNull()]
    for _ in 0..<100 { nested = ["arrayValue": ["values": [nested]]] }
    func metadata(_ change: BundleFile.JSON) -> Data {
      let valid: BundleFile.JSON = [
        "id": "b", "version": 1, "createTime": ["seconds": 1, "nanos": 0], "totalDocuments": 0,
        "totalBytes": 0,
      ]
      return BundleFile.bytes(["metadata": valid.merging(change) { $1 }])
    }
    return [
      (file { $0.add("books/a", ["x": nested], at: 1) }, .dataLoss, "cannot be read"),
      (metadata(["totalDocuments": -1]), .dataLoss, "not a count"),
      (metadata(["totalBytes": "-9223372036854775809"]), .dataLoss, "not a count"),
      (metadata(["version": 1e300]), .dataLoss, "not a count"),
      (metadata(["createTime": ["seconds": "31556952000000000", "nanos": 0]]), .dataLoss, "not a time"),
      (metadata(["createTime": ["seconds": 0, "nanos": -1]]), .dataLoss, "not a time"),
      (metadata(["createTime": "99999-01-01T00:00:00Z"]), .dataLoss, "not a time"),
      (Data(), .unknown, "empty"),
      (Data("x".utf8), .dataLoss, "length"),
      (Data("12345678901{".utf8), .dataLoss, "length"),
      (Data("{}".utf8), .dataLoss, "begins without"),
      (Data("9999999999{".utf8), .dataLoss, "more than the maximum"),
      (Data("2{}".utf8), .dataLoss, "must be"),
      (Data("\(deep.utf8.count + 2){\"\(deep)".utf8), .dataLoss, "JSON"),
      (file { _ in } + BundleFile.bytes(["metadata": ["id": "x"]]), .dataLoss, "missing"),
      (file { _ in } + file { _ in }, .dataLoss, "twice"),
      (BundleFile.bytes(["document": [String: Any]()]), .dataLoss, "missing"),
      (
        file {
          $0.add("books/a", nil, at: 1); $0.documentCount = 5
        }, .invalidArgument, "1 documents"
      ),
      (
        file {
          $0.add("books/a", [:], at: 1); $0.elements.removeLast()
        }, .invalidArgument, "end with"
      ),
      (
        file {
          $0.add("books/a", [:], at: 1); $0.elements.removeFirst()
        }, .invalidArgument,
        "does not match"
      ),
      (
        file {
          $0.database = "projects/other/databases/(default)"; $0.add("a/b", nil, at: 1)
        },
        .dataLoss, "other"
      ),
      (file { $0.add("books", nil, at: 1) }, .dataLoss, "damaged"),
      (file { $0.add("books/a", ["x": ["no": 1]], at: 1) }, .dataLoss, "cannot be read"),
      (file { $0.add("books/a", ["x": 7], at: 1) }, .dataLoss, "cannot be read"),
      (withQuery(["select": ["fields": []]]), .dataLoss, "select"),
      (withQuery(["offset": 3]), .dataLoss, "offset"),
      (withQuery(["from": []]), .dataLoss, "exactly one"),
      (withQuery(["from": [["collectionId": "a"], ["collectionId": "b"]]]), .dataLoss, "exactly one"),
      (withQuery(["limit": 2], limitType: "MIDDLE"), .dataLoss, "MIDDLE"),
      // Running this query would trap, so loading it must fail.
      (withQuery(["limit": 2], limitType: "LAST"), .dataLoss, "order"),
      (
        withQuery([
          "where": ["fieldFilter": ["field": ["fieldPath": "a"], "op": "IN", "value": ["stringValue": ""]]]
        ]), .dataLoss, "not valid"
      ),
    ]
  }

  @Test("an invalid bundle is rejected with a specific code and message")
  func invalidBundles() {
    for (number, (data, code, words)) in invalidFiles().enumerated() {
      do {
        _ = try load([data])
        Issue.record("case \(number) was accepted")
      } catch {
        #expect(error.code == code && error.message.contains(words), "case \(number): \(error)")
      }
    }
  }
}
