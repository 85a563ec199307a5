// Tests every limit on writes over a socket. A value at the limit passes; a larger one is rejected with the
// official code and text.

import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import GRPCFraming
import NIOCore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

/// One limit, with a request at the limit and one above it.
struct LimitCase: Sendable, CustomTestStringConvertible {
  var testDescription: String
  /// Makes a request that is `excess` above the limit.
  var commit: @Sendable (_ excess: Int) throws -> Google_Firestore_V1_CommitRequest
  /// A part of the error message.
  var message: String

  init(
    _ description: String, _ message: String,
    commit: @escaping @Sendable (Int) throws -> Google_Firestore_V1_CommitRequest
  ) {
    testDescription = description
    self.message = message
    self.commit = commit
  }

  /// Makes a limit on the contents of one document.
  init(_ description: String, _ message: String, fields: @escaping @Sendable (Int) -> MapValue) {
    self.init(description, message) { excess in
      Self.request([Write(.update(try Self.name("c/d"), fields: fields(excess)))])
    }
  }

  /// Makes a limit on one write.
  init(_ description: String, _ message: String, write: @escaping @Sendable (Int) -> Proto.Write) {
    self.init(description, message) { excess in
      var request = Google_Firestore_V1_CommitRequest()
      request.database = FirestoreTestServer.database
      request.writes = [write(excess)]
      return request
    }
  }

  /// Makes a limit on a document's name.
  init(_ description: String, _ message: String, path: @escaping @Sendable (Int) -> String) {
    self.init(description, message) { excess in
      var request = Google_Firestore_V1_CommitRequest()
      request.database = FirestoreTestServer.database
      // The document has no fields: their index entries would exceed a limit before the name does.
      request.writes = [.set(path(excess), [:])]
      return request
    }
  }

  static func name(_ path: ResourcePath) throws -> DocumentName {
    try #require(DocumentName(database: DatabaseName(project: "demo-test"), path: path))
  }

  static func request(_ writes: [Write]) -> Google_Firestore_V1_CommitRequest {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = FirestoreTestServer.database
    request.writes = writes.map { Google_Firestore_V1_Write($0) }
    return request
  }

  static func text(_ count: Int) -> String { String(repeating: "x", count: count) }

  /// A value with `depth` levels of maps and arrays.
  static func nested(_ depth: Int) -> Value {
    var value: Value = 1
    for level in 0..<depth { value = level.isMultiple(of: 2) ? .array([value]) : .map(["m": value]) }
    return value
  }

  /// Fields that make the document `c/d` exactly `size` bytes long.
  static func document(of size: Int) -> MapValue {
    // The size is the sum of 2 + 2 + 16 bytes for the name, 32 for the document, and for each field the bytes of its
    // name and value, each with 1 more.
    ["a": .string(text(500_000)), "b": .bytes([UInt8](repeating: 1, count: size - 52 - 2 - 500_001 - 2))]
  }

  static func increments(_ count: Int, in fields: Range<Int>) -> [FieldTransform] {
    (0..<count).map { FieldTransform(FieldPath(field: "f\(fields.lowerBound + $0)"), .increment(1)) }
  }
}

@Suite("Limits of writes over gRPC", .timeLimit(.minutes(10)))
struct LimitTests {
  static let cases: [LimitCase] = [
    LimitCase(
      "a document's size",
      "its size (1,048,577 bytes) exceeds the maximum allowed size of 1,048,576 bytes",
      fields: { LimitCase.document(of: FirestoreLimits.standard.documentBytes + $0) }),
    LimitCase("a document's size, by a mask", "exceeds the maximum allowed size of 1,048,576 bytes") {
      excess in
      var documentFields = LimitCase.document(of: FirestoreLimits.standard.documentBytes + excess)
      let second = documentFields["b"] ?? 0
      documentFields["b"] = nil
      return LimitCase.request([
        Write(.update(try LimitCase.name("c/d"), fields: documentFields)),
        Write(.update(try LimitCase.name("c/d"), fields: ["b": second]), mask: [FieldPath(field: "b")]),
      ])
    },
    LimitCase("a document's size, by a transform", "exceeds the maximum allowed size of 1,048,576 bytes") {
      excess in
      // A number field adds eight bytes for the number, the bytes of the field's name, and one byte more.
      let fields = LimitCase.document(of: FirestoreLimits.standard.documentBytes - 10 + excess)
      return LimitCase.request([
        Write(
          .update(try LimitCase.name("c/d"), fields: fields),
          transforms: [FieldTransform(FieldPath(field: "n"), .increment(1))])
      ])
    },
    LimitCase(
      "a text", "The value of property \"t\" is longer than 1048487 bytes.",
      fields: {
        ["t": .string(LimitCase.text(FirestoreLimits.standard.valueBytes + $0))]
      }),
    LimitCase(
      "bytes", "The value of property \"t\" is longer than 1048487 bytes.",
      fields: {
        ["t": .bytes([UInt8](repeating: 0, count: FirestoreLimits.standard.valueBytes + $0))]
      }),
    LimitCase(
      "levels of maps and arrays", "is nested more than 20 levels",
      fields: {
        ["v": LimitCase.nested(FirestoreLimits.standard.valueDepth + $0)]
      }),
    LimitCase(
      "a field's name", "The property.name is longer than 1500 bytes.",
      fields: {
        [LimitCase.text(Limits.fieldNameBytes + $0): 1]
      }),
    LimitCase(
      "a field's path inside a map", "is longer than 1500 bytes.",
      fields: {
        ["m": .array([.map([LimitCase.text(Limits.fieldPathBytes - 2 + $0): 1])])]
      }),
    LimitCase("a path in a mask", "Property path is longer than 1500 bytes.") { excess in
      let path = FieldPath(field: LimitCase.text(Limits.fieldPathBytes + excess))
      return LimitCase.request([Write(.update(try LimitCase.name("c/d"), fields: [:]), mask: [path])])
    },
    LimitCase("a path in a mask, in quotes", "Property path is longer than 1500 bytes.") { excess in
      let path = FieldPath(field: String(repeating: "é", count: 750) + LimitCase.text(excess))
      return LimitCase.request([Write(.update(try LimitCase.name("c/d"), fields: [:]), mask: [path])])
    },
    LimitCase(
      "dimensions of a vector", "more than 2048 dimensions",
      fields: {
        ["v": .vector([Double](repeating: 1, count: FirestoreLimits.standard.vectorDimensions + $0))]
      }),
    LimitCase(
      "a document's id", "is invalid because it is longer than 1500 bytes.",
      path: {
        "c/\(LimitCase.text(Limits.resourceIDBytes + $0))"
      }),
    LimitCase(
      "a collection's id", "is invalid because it is longer than 1500 bytes.",
      path: {
        "\(LimitCase.text(Limits.resourceIDBytes + $0))/d"
      }),
    LimitCase(
      "an id in bytes, not letters", "is invalid because it is longer than 1500 bytes.",
      path: {
        "c/\(String(repeating: "é", count: 750))\(LimitCase.text($0))"
      }),
    LimitCase(
      "a document's full name", "Document name is longer than 6144 bytes.",
      path: {
        let rest = Limits.documentNameBytes - FirestoreTestServer.documents.utf8.count - 1
        let long = Array(repeating: LimitCase.text(1_000), count: 5).joined(separator: "/")
        return "\(long)/\(LimitCase.text(rest - long.utf8.count - 1 + $0))"
      }),
    LimitCase(
      "levels of collections", "Document name has more than 100 levels of collections.",
      path: {
        Array(repeating: "c/d", count: Limits.collectionDepth + $0).joined(separator: "/")
      }),
    LimitCase("transforms of one write", "Cannot apply more than 500 field transforms") { excess in
      LimitCase.request([
        Write(
          .update(try LimitCase.name("c/d"), fields: [:]),
          transforms: LimitCase.increments(FirestoreLimits.standard.transformsPerDocument + excess, in: 0..<1)
        )
      ])
    },
    LimitCase("transforms of several writes to one document", "Cannot apply more than 500 field transforms") {
      excess in
      LimitCase.request([
        Write(
          .update(try LimitCase.name("c/d"), fields: [:]), transforms: LimitCase.increments(250, in: 0..<1)),
        Write(.transform(try LimitCase.name("c/e"), LimitCase.increments(500, in: 0..<1))),
        Write(.transform(try LimitCase.name("c/d"), LimitCase.increments(250 + excess, in: 250..<251))),
      ])
    },
    // The limit counts two entries for each distinct element, and two for the array itself.
    LimitCase(
      "index entries", "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED",
      fields: {
        [
          "a": .array(
            (0..<(EngineLimits.standard.maximumIndexEntries / 2 - 1 + $0)).map { .integer(Int64($0)) })
        ]
      }),
    LimitCase(
      "index entries of many fields", "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED",
      fields: {
        MapValue((0..<(EngineLimits.standard.maximumIndexEntries / 2 + $0)).map { ("f\($0)", 1) })
      }),
    LimitCase(
      "an index entry", "has 7681 bytes, more than the maximum of 7680 bytes",
      write: { excess in
        // The size of an entry is the sum of the names of the document and of its parent, the field's name (2), the
        // indexed 1,500 bytes of the value, and 32. Without the last id, the names have 3,019 and 2,018 bytes.
        let long = LimitCase.text(1_000)
        let id = LimitCase.text(7_680 - 1_500 - 2 - 32 - 2_018 - 3_019 - 1 + excess)
        return .set("\(long)/\(long)/\(long)/\(id)", ["t": .text(LimitCase.text(5_000))])
      }),
    LimitCase("a request", "Request payload size exceeds the limit: 10485760 bytes.") { excess in
      var request = LimitCase.request([Write(.update(try LimitCase.name("c/d"), fields: ["n": 1]))])
      // A request tag, which the server ignores, fills the request up to the limit. The tags and lengths of its two protobuf
      // fields take ten more bytes.
      let size: [UInt8] = try request.serializedBytes()
      request.requestOptions.requestTags = [LimitCase.text((10 << 20) - size.count - 10 + excess)]
      let filled: [UInt8] = try request.serializedBytes()
      #expect(filled.count == (10 << 20) + excess)
      return request
    },
  ]

  @Test(
    "A request at the limit passes; a request above the limit is rejected and writes nothing",
    arguments: cases)
  func bounds(limit: LimitCase) async throws {
    try await FirestoreTestServer.with { client in
      let aboveLimit = try limit.commit(1)
      let name = aboveLimit.writes[0].update.name
      var get = Google_Firestore_V1_GetDocumentRequest()
      get.name = name
      do {
        let _: Google_Firestore_V1_CommitResponse = try await client.unary("Commit", aboveLimit)
        Issue.record("a request above the limit succeeded: \(limit.testDescription)")
      } catch let status as GRPCStatus {
        #expect(status.code == .invalidArgument, "\(status)")
        #expect(status.message.contains(limit.message), "\(status.message.prefix(300))")
      }
      let passing = try limit.commit(0)
      let response: Google_Firestore_V1_CommitResponse = try await client.unary("Commit", passing)
      #expect(response.writeResults.count == passing.writes.count)
      get.name = passing.writes[0].update.name
      let stored: Google_Firestore_V1_Document = try await client.unary("GetDocument", get)
      // The second commit created the document: the first wrote nothing.
      #expect(stored.createTime == response.commitTime)
    }
  }

  @Test("A request above 10 MiB ends a Write stream or a call with the same text")
  func streams() async throws {
    try await FirestoreTestServer.with { client in
      let call = try await client.open("Write")
      try await call.send(
        Google_Firestore_V1_WriteRequest.with { $0.database = FirestoreTestServer.database })
      let _: Google_Firestore_V1_WriteResponse = try await call.message()
      let large = Google_Firestore_V1_WriteRequest.with {
        $0.writes = [.set("c/d", ["n": .int(1)])]
        $0.requestOptions.requestTags = [LimitCase.text(10 << 20)]
      }
      try? await call.send(large)
      let status = try await call.status()
      #expect(status.code == .invalidArgument)
      #expect(status.message.contains("Request payload size exceeds the limit: 10485760 bytes."))
      let huge = try await client.open("Commit")
      try? await huge.send(
        Google_Firestore_V1_CommitRequest.with { $0.requestOptions.requestTags = [LimitCase.text(18 << 20)] },
        endStream: true)
      let rejected = try await huge.status()
      #expect(rejected.code == .invalidArgument)
      #expect(rejected.message.contains("Request payload size exceeds the limit: 10485760 bytes."))
    }
  }

  @Test("CreateDocument has the same limits on names as every other write")
  func createDocument() async throws {
    try await FirestoreTestServer.with { client in
      func create(_ collection: String, _ id: String, under parent: String = "") async -> GRPCStatus {
        var request = Google_Firestore_V1_CreateDocumentRequest()
        request.parent = FirestoreTestServer.documents + parent
        request.collectionID = collection
        request.documentID = id
        do {
          let _: Google_Firestore_V1_Document = try await client.unary("CreateDocument", request)
          return .ok
        } catch let status as GRPCStatus { return status } catch { return GRPCStatus(.unknown, "\(error)") }
      }
      #expect(await create(LimitCase.text(1_500), LimitCase.text(1_500)) == .ok)
      for (collection, id, parent) in [
        (LimitCase.text(1_501), "d", ""), ("c", LimitCase.text(1_501), ""), ("a/b", "d", ""), ("", "d", ""),
        ("__c__", "d", ""), ("..", "d", ""), ("c", "a/b", ""), ("c", "__d__", ""), ("c", ".", ""),
        ("c", "d", String(repeating: "/c/d", count: 100)),
        (
          LimitCase.text(1_500), LimitCase.text(1_500), String(repeating: "/\(LimitCase.text(900))", count: 4)
        ),
      ] {
        let status = await create(collection, id, under: parent)
        #expect(status.code == .invalidArgument, "\(collection.prefix(9)) \(id.prefix(9)): \(status)")
      }
    }
  }
}
