// Tests the direct decoding of requests with writes. It must give the same results as the code that protoc generates.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import RandomModels
import SwiftProtobuf
import Testing

@Suite("Requests with writes", .timeLimit(.minutes(10)))
struct CommitRequestTests {
  static func commit(_ bytes: [UInt8]) throws -> CommitRequest {
    try bytes.withUnsafeBytes { try CommitRequest(decoding: $0) }
  }

  static func stream(_ bytes: [UInt8]) throws -> WriteStreamRequest {
    try bytes.withUnsafeBytes { try WriteStreamRequest(decoding: $0) }
  }

  static func bytes(of write: Google_Firestore_V1_Write) throws -> [UInt8] {
    try Google_Firestore_V1_CommitRequest.with { $0.writes = [write] }.serializedBytes()
  }

  static func rejection(_ write: Google_Firestore_V1_Write) throws -> String? {
    do {
      _ = try commit(try bytes(of: write))
      return nil
    } catch { return (error as? FirestoreError)?.message }
  }

  @Test("Commits of random writes decode as with the generated code")
  func commits() throws {
    var source = RandomValues(seed: 61)
    for _ in 0..<1500 {
      let writes = (0..<source.below(4)).map { _ in source.write() }
      let message = Google_Firestore_V1_CommitRequest.with {
        $0.database = "projects/p/databases/d"
        $0.writes = writes.map { Google_Firestore_V1_Write($0) }
        if source.below(2) == 0 { $0.transaction = .init([1, 2, 3]) }
        $0.requestOptions.requestTags = ["ignored"]
      }
      let request = try Self.commit(try message.serializedBytes())
      #expect(request.database == message.database && request.writes == writes)
      #expect(request.transaction == (message.transaction.isEmpty ? nil : [1, 2, 3]))
    }
  }

  @Test("A repeated message field is merged into the first, as in protobuf")
  func merged() throws {
    var source = RandomValues(seed: 63)
    var merging = 0
    for _ in 0..<3000 {
      let both = [source.write(), source.write()].map { Google_Firestore_V1_Write($0) }
      // Two concatenated encodings of a message are the encoding of the merged message.
      let bytes: [UInt8] = try both.flatMap { try $0.serializedBytes() as [UInt8] }
      let expected = try Google_Firestore_V1_Write(serializedBytes: bytes)
      if case .update? = both[0].operation, case .update? = both[1].operation { merging += 1 }
      var commit = Google_Firestore_V1_CommitRequest()
      commit.writes = [expected]
      let wanted = try Self.commit(try commit.serializedBytes())
      let length = Google_Protobuf_BytesValue.with { $0.value = Data(bytes) }
      // The wrapper's field 1 becomes the commit's field 2: the same bytes except for the tag.
      var request: [UInt8] = try length.serializedBytes()
      if request.isEmpty { continue }
      request[0] = 0x12
      #expect(try Self.commit(request).writes == wanted.writes)
    }
    #expect(merging > 300)
  }

  @Test("A value whose map, array, timestamp or geo point occurs twice on the wire is merged")
  func mergedValues() throws {
    let pairs: [(Google_Firestore_V1_Value, Google_Firestore_V1_Value)] = [
      (
        .with {
          $0.mapValue.fields = ["a": .with { $0.integerValue = 1 }, "b": .with { $0.integerValue = 2 }]
        },
        .with {
          $0.mapValue.fields = [
            "b": .with { $0.stringValue = "x" }, "c": .with { $0.nullValue = .nullValue },
          ]
        }
      ),
      (
        .with { $0.arrayValue.values = [.with { $0.integerValue = 1 }] },
        .with { $0.arrayValue.values = [.with { $0.booleanValue = true }] }
      ),
      (.with { $0.timestampValue.seconds = 7 }, .with { $0.timestampValue.nanos = 5000 }),
      (.with { $0.geoPointValue.latitude = 7 }, .with { $0.geoPointValue.longitude = 5 }),
      (.with { $0.mapValue.fields = ["a": .with { $0.integerValue = 1 }] }, .with { $0.integerValue = 3 }),
      (.with { $0.integerValue = 3 }, .with { $0.arrayValue = .init() }),
    ]
    for (first, second) in pairs {
      let bytes: [UInt8] = try first.serializedBytes() + second.serializedBytes()
      let expected: [UInt8] = try Google_Firestore_V1_Value(serializedBytes: bytes).serializedBytes()
      let (found, wanted) = try (
        bytes.withUnsafeBytes { buffer in
          var reader = ProtobufReader(buffer)
          return try reader.value()
        },
        expected.withUnsafeBytes { buffer in
          var reader = ProtobufReader(buffer)
          return try reader.value()
        }
      )
      #expect(found == wanted)
    }
  }

  @Test("All messages of a Write stream decode, including the handshake")
  func streams() throws {
    var source = RandomValues(seed: 62)
    let writes = (0..<20).map { _ in source.write() }
    let message = Google_Firestore_V1_WriteRequest.with {
      $0.database = "d"
      $0.streamID = "s"
      $0.streamToken = .init([9])
      $0.writes = writes.map { Google_Firestore_V1_Write($0) }
      $0.labels = ["a": "b"]
    }
    let request = try Self.stream(try message.serializedBytes())
    #expect(request.database == "d" && request.streamID == "s" && request.streamToken == [9])
    #expect(request.writes == writes)
    let empty = try Self.stream([])
    #expect(empty.database.isEmpty && empty.writes.isEmpty && empty.streamToken.isEmpty)
  }

  @Test("Two Unicode spellings of one field name decode as two fields")
  func unicodeSpellings() throws {
    let name = try DocumentName(parsing: "projects/p/databases/d/documents/c/d")
    let document = Document(
      name: name, fields: ["é": 1, "e\u{301}": 2], createTime: .epoch, updateTime: .epoch)
    let content = DocumentCodec.encode(document)
    let write = [0x0A, UInt8(content.count)] + content
    let request = try Self.commit([0x12, UInt8(write.count)] + write)
    #expect(request.writes == [Write(.update(name, fields: document.fields))])
  }

  @Test("An empty mask differs from no mask")
  func masks() throws {
    let name = "projects/p/databases/d/documents/c/d"
    let empty = Google_Firestore_V1_Write.with {
      $0.update.name = name
      $0.updateMask = .init()
    }
    #expect(try Self.commit(try Self.bytes(of: empty)).writes.first?.mask == [])
    let none = Google_Firestore_V1_Write.with { $0.update.name = name }
    #expect(try Self.commit(try Self.bytes(of: none)).writes.first?.mask == nil)
  }

  @Test("Empty messages are rejected with the same errors as with the generated code")
  func rejections() throws {
    #expect(try Self.rejection(.init()) == "empty write operation")
    #expect(
      try Self.rejection(.with { $0.transform.fieldTransforms = [.init()] })
        == "A field transform must name its type.")
    #expect(try Self.rejection(.with { $0.delete = "x" })?.hasPrefix("Document name \"x\" lacks") == true)
    #expect(
      try Self.rejection(.with { $0.updateTransforms = [.with { $0.setToServerValue = .unspecified }] })
        == "Unknown server value in a field transform.")
    #expect(throws: FirestoreError.self) { try Self.commit([0x12, 0x05, 0x0A]) }
    #expect(throws: FirestoreError.self) { try Self.stream([0x0A, 0x01, 0xFF]) }
  }

  @Test("Corrupted requests never crash, and the generated code accepts every accepted request")
  func corruption() throws {
    var source = RandomValues(seed: 63)
    for _ in 0..<8000 {
      var bytes = try Self.bytes(of: Google_Firestore_V1_Write(source.write()))
      for _ in 0..<1 + source.below(3) where !bytes.isEmpty {
        switch source.below(3) {
        case 0: bytes[source.below(bytes.count)] = UInt8(source.below(256))
        case 1: bytes.remove(at: source.below(bytes.count))
        default: bytes.insert(UInt8(source.below(256)), at: source.below(bytes.count))
        }
      }
      guard (try? Self.commit(bytes)) != nil else { continue }
      #expect(throws: Never.self) { try Google_Firestore_V1_CommitRequest(serializedBytes: bytes) }
    }
  }
}
