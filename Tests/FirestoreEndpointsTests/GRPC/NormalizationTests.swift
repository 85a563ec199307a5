// Tests names that Swift's `String` compares as equal and Firestore does not: "é" as one scalar and as two.
// The two forms of "é" must coexist in every request and response, so these tests build and read the bytes.

import FirestoreModel
import FirestoreWire
import GRPCFraming
import NIOCore
import Testing

@testable import EndpointFixture

@Suite("Unicode normalization forms over gRPC", .timeLimit(.minutes(10)))
struct NormalizationTests {
  private let composed = "\u{E9}"
  private let decomposed = "e\u{301}"
  private let documents = FirestoreTestServer.documents

  /// A field for each form of "é", and a map with a field for each form.
  private var both: MapValue {
    [
      composed: 1, decomposed: 2, "m": .map([composed: 3, decomposed: 4]),
      "a": [["\(composed)": 5, "\(decomposed)": 6]],
    ]
  }

  // MARK: Bytes

  private static func varint(_ value: Int) -> [UInt8] {
    value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7F) | 0x80] + varint(value >> 7)
  }

  private func field(_ number: Int, _ bytes: [UInt8]) -> [UInt8] {
    Self.varint(number << 3 | 2) + Self.varint(bytes.count) + bytes
  }

  private func field(_ number: Int, _ text: String) -> [UInt8] { field(number, Array(text.utf8)) }

  private func integerField(_ number: Int, _ value: Int) -> [UInt8] {
    Self.varint(number << 3) + Self.varint(value)
  }

  private func document(_ name: String, _ fields: MapValue) -> [UInt8] {
    (name.isEmpty ? [] : field(1, name))
      + fields.entries.flatMap { field(2, field(1, $0.key) + field(2, DocumentCodec.encode($0.value))) }
  }

  /// Returns the length-delimited fields of a message with the given field number, and skips all other fields.
  private func parts(_ number: Int, of message: [UInt8]) throws -> [[UInt8]] {
    var parts: [[UInt8]] = []
    var rest = message[...]
    func varint() throws -> Int {
      var value = 0
      var shift = 0
      while true {
        guard let byte = rest.popFirst() else {
          throw FirestoreError.internalError("The response is incomplete.")
        }
        value |= Int(byte & 0x7F) << shift
        if byte < 0x80 { return value }
        shift += 7
      }
    }
    while !rest.isEmpty {
      let tag = try varint()
      switch tag & 7 {
      case 0: _ = try varint()
      case 1: rest = rest.dropFirst(8)
      case 5: rest = rest.dropFirst(4)
      default:
        let length = try varint()
        if tag >> 3 == number { parts.append(Array(rest.prefix(length))) }
        rest = rest.dropFirst(length)
      }
    }
    return parts
  }

  private func framed(_ message: [UInt8]) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.writeGRPCMessage(bytes: message)
    return buffer
  }

  /// Calls a method and returns the bytes of all responses.
  @discardableResult
  private func call(_ client: GRPCTestClient, _ method: String, _ request: [UInt8]) async throws -> [[UInt8]]
  {
    let call = try await client.open(method, metadata: GRPCTestClient.administrator)
    try await call.send(raw: framed(request), endStream: true)
    var messages: [[UInt8]] = []
    while true {
      switch try await call.next() {
      case .metadata: break
      case .message(let bytes): messages.append(Array(bytes.readableBytesView))
      case .end(let status, _):
        guard status.code == .ok else { throw status }
        return messages
      }
    }
  }

  private func fields(_ document: [UInt8]?) throws -> MapValue {
    try DocumentCodec.decode(try #require(document)).fields
  }

  private func stored(_ client: GRPCTestClient, _ path: String) async throws -> MapValue {
    try fields(try await call(client, "GetDocument", field(1, "\(documents)/\(path)")).first)
  }

  private func commit(_ client: GRPCTestClient, _ path: String, _ fields: MapValue) async throws {
    let write = field(1, document("\(documents)/\(path)", fields))
    try await call(client, "Commit", field(1, FirestoreTestServer.database) + field(2, write))
  }

  // MARK: Fields

  @Test("CreateDocument, GetDocument, BatchGetDocuments and ListDocuments keep both forms")
  func creating() async throws {
    try await FirestoreTestServer.with { client in
      let request = field(1, documents) + field(2, "c") + field(3, "d") + field(4, document("", both))
      #expect(try fields(try await call(client, "CreateDocument", request).first) == both)
      #expect(try await stored(client, "c/d") == both)
      let batch = try await call(
        client, "BatchGetDocuments", field(1, FirestoreTestServer.database) + field(2, "\(documents)/c/d"))
      #expect(try fields(try parts(1, of: try #require(batch.first)).first) == both)
      let list = try await call(client, "ListDocuments", field(1, documents) + field(2, "c"))
      #expect(try fields(try parts(1, of: try #require(list.first)).first) == both)
    }
  }

  @Test("UpdateDocument keeps both forms, and its masks distinguish them")
  func updating() async throws {
    try await FirestoreTestServer.with { client in
      let name = "\(documents)/c/d"
      let complete = try await call(client, "UpdateDocument", field(1, document(name, both)))
      #expect(try fields(complete.first) == both)
      let changed = try await call(
        client, "UpdateDocument",
        field(1, document(name, [composed: 10, decomposed: 20])) + field(2, field(1, "`\(decomposed)`"))
          + field(3, field(1, "`\(composed)`") + field(1, "m.`\(decomposed)`")))
      #expect(try fields(changed.first) == [composed: 1, "m": .map([decomposed: 4])])
      let current = try await stored(client, "c/d")
      #expect(current[composed] == 1)
      #expect(current[decomposed] == 20)
    }
  }

  @Test("Commit and the Write stream keep both forms, in fields and transforms")
  func writing() async throws {
    try await FirestoreTestServer.with { client in
      try await commit(client, "c/committed", both)
      #expect(try await stored(client, "c/committed") == both)
      let stream = try await client.open("Write")
      try await stream.send(raw: framed(field(1, FirestoreTestServer.database)))
      let element: Value = .map([composed: 1, decomposed: 2])
      let transform =
        field(1, "list") + field(6, field(1, DocumentCodec.encode(element)))
      let write = field(1, document("\(documents)/c/streamed", both)) + field(7, transform)
      try await stream.send(raw: framed(field(3, write)), endStream: true)
      #expect(try await stream.status() == .ok)
      var expected = both
      expected["list"] = .array([element])
      #expect(try await stored(client, "c/streamed") == expected)
    }
  }

  // MARK: Queries

  private func query(where value: Value) -> [UInt8] {
    let filter = field(1, field(2, "m")) + integerField(2, 5) + field(3, DocumentCodec.encode(value))
    return field(2, field(2, "q")) + field(3, field(2, filter))
  }

  private func foundIDs(_ client: GRPCTestClient, _ query: [UInt8]) async throws -> [String] {
    try await call(client, "RunQuery", field(1, documents) + field(2, query)).compactMap { response in
      try parts(1, of: response).first.map { try DocumentCodec.decode($0).name.id }
    }
  }

  @Test("Operands, cursors and projections of RunQuery distinguish both forms")
  func querying() async throws {
    try await FirestoreTestServer.with { client in
      let maps: [(String, MapValue)] = [
        ("both", [composed: 1, decomposed: 2]), ("composed", [composed: 1]), ("decomposed", [decomposed: 2]),
      ]
      for (id, map) in maps { try await commit(client, "q/\(id)", ["m": .map(map)]) }
      for (id, map) in maps {
        #expect(try await foundIDs(client, query(where: .map(map))) == [id])
      }
      let ordered = field(2, field(2, "q")) + field(4, field(1, field(2, "m")))
      // In UTF-8, "e" sorts before "é". A map sorts after every map that is its prefix.
      #expect(try await foundIDs(client, ordered) == ["decomposed", "both", "composed"])
      for (position, (id, map)) in [maps[2], maps[0], maps[1]].enumerated() {
        let start = field(7, field(1, DocumentCodec.encode(.map(map))) + integerField(2, 1))
        let response = try await foundIDs(client, ordered + start)
        #expect(response.first == id)
        #expect(response.count == 3 - position)
      }
      let select = field(1, field(2, field(2, "m.`\(decomposed)`")))
      let projected = try await call(
        client, "RunQuery", field(1, documents) + field(2, query(where: .map(maps[0].1)) + select))
      #expect(
        try fields(try parts(1, of: try #require(projected.first)).first) == ["m": .map([decomposed: 2])])
    }
  }

  @Test("Operands and changes of Listen distinguish both forms")
  func listening() async throws {
    try await FirestoreTestServer.with { client in
      let map: MapValue = [composed: 1, decomposed: 2]
      try await commit(client, "q/first", ["m": .map(map), composed: 1, decomposed: 2])
      try await commit(client, "q/other", ["m": .map([decomposed: 2])])
      let stream = try await client.open("Listen")
      let target = field(2, field(1, documents) + field(2, query(where: .map(map)))) + integerField(5, 1)
      try await stream.send(raw: framed(field(1, FirestoreTestServer.database) + field(2, target)))
      func nextChange() async throws -> Document {
        while true {
          guard case .message(let bytes) = try await stream.next() else { continue }
          if let change = try parts(3, of: Array(bytes.readableBytesView)).first {
            return try DocumentCodec.decode(try #require(try parts(1, of: change).first))
          }
        }
      }
      let first = try await nextChange()
      #expect(first.name.id == "first")
      #expect(first.fields == ["m": .map(map), composed: 1, decomposed: 2])
      try await commit(client, "q/third", ["m": .map([composed: 1])])
      try await commit(client, "q/fourth", ["m": .map(map)])
      #expect(try await nextChange().name.id == "fourth")
      try await stream.reset()
    }
  }

  // MARK: Ids

  @Test("Document ids and collection ids in both forms are different documents and collections")
  func ids() async throws {
    try await FirestoreTestServer.with { client in
      var number: Int64 = 0
      for collection in [composed, decomposed] {
        for id in [composed, decomposed] {
          number += 1
          try await commit(client, "\(collection)/\(id)", ["n": .integer(number)])
        }
      }
      number = 0
      for collection in [composed, decomposed] {
        for id in [composed, decomposed] {
          number += 1
          #expect(try await stored(client, "\(collection)/\(id)") == ["n": .integer(number)])
        }
        let responses = try await call(
          client, "RunQuery", field(1, documents) + field(2, field(2, field(2, collection))))
        let names = try responses.compactMap { try parts(1, of: $0).first }.map {
          try DocumentCodec.decode($0).name
        }
        #expect(
          names.map { Array($0.path.segments[0].utf8) } == [Array(collection.utf8), Array(collection.utf8)])
        #expect(
          names.map { Array($0.path.segments[1].utf8) } == [Array(decomposed.utf8), Array(composed.utf8)])
      }
      let collections = try await call(client, "ListCollectionIds", field(1, documents))
      #expect(
        try parts(1, of: try #require(collections.first)) == [Array(decomposed.utf8), Array(composed.utf8)])
      let names = [composed, decomposed].map { "\(documents)/\(composed)/\($0)" }
      let batch = try await call(
        client, "BatchGetDocuments",
        field(1, FirestoreTestServer.database) + names.flatMap { field(2, $0) })
      #expect(try batch.flatMap { try parts(1, of: $0) }.count == 2)
      // One commit may write both documents, and each write changes only one.
      try await call(
        client, "Commit",
        field(1, FirestoreTestServer.database)
          + names.flatMap { field(2, field(1, document($0, ["s": .integer(Int64($0.utf8.count))]))) })
      for name in names {
        let current = try fields(try await call(client, "GetDocument", field(1, name)).first)
        #expect(current == ["s": .integer(Int64(name.utf8.count))])
      }
    }
  }
}
