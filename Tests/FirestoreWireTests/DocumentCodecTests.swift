// Tests the document codec against the code that protoc generates from Google's definitions of the messages.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import RandomModels
import SwiftProtobuf
import Testing

@Suite("Document codec", .timeLimit(.minutes(10)))
struct DocumentCodecTests {
  static func rejection(_ bytes: [UInt8]) -> FirestoreError? {
    do throws(FirestoreError) {
      _ = try DocumentCodec.decodeValue(bytes)
      return nil
    } catch {
      return error
    }
  }

  static func varint(_ value: Int) -> [UInt8] {
    value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7F) | 0x80] + varint(value >> 7)
  }

  @Test("The codec and the generated code read each other's bytes")
  func values() throws {
    var source = RandomValues(seed: 41)
    for _ in 0..<6000 {
      let value = source.value()
      let bytes = DocumentCodec.encode(value)
      #expect(try DocumentCodec.decodeValue(bytes) == value)
      #expect(try Value(Google_Firestore_V1_Value(serializedBytes: bytes)) == value)
      let message: [UInt8] = try Google_Firestore_V1_Value(value).serializedBytes()
      #expect(try DocumentCodec.decodeValue(message) == value, "\(value)")
      #expect(message.count == bytes.count)
    }
  }

  @Test("Documents and field maps larger than the initial buffer are unchanged after encoding and decoding")
  func documents() throws {
    var source = RandomValues(seed: 42)
    for round in 0..<1500 {
      var (name, fields) = source.document()
      if round % 100 == 0 { fields["long"] = .string(String(repeating: "é", count: 700 * (1 + round / 10))) }
      let document = Document(
        name: name, fields: fields, createTime: source.timestamp(), updateTime: source.timestamp())
      let bytes = DocumentCodec.encode(document)
      #expect(try DocumentCodec.decode(bytes) == document)
      #expect(try Document(Google_Firestore_V1_Document(serializedBytes: bytes)) == document)
      let message: [UInt8] = try Google_Firestore_V1_Document(document).serializedBytes()
      #expect(try DocumentCodec.decode(message) == document)
      #expect(try DocumentCodec.decodeFields(DocumentCodec.encode(fields: fields)) == fields)
      name = document.name
    }
  }

  @Test("Two Unicode spellings of one letter are two fields on the wire")
  func canonicalEquivalence() throws {
    let fields: MapValue = ["é": 1, "e\u{301}": 2]
    #expect(try DocumentCodec.decodeFields(DocumentCodec.encode(fields: fields)) == fields)
  }

  @Test("Integers of all lengths and both zeros are unchanged after encoding and decoding")
  func numbers() throws {
    for shift in 0..<64 {
      for value in [
        Int64(1) << Int64(shift), (Int64(1) << Int64(shift)) &- 1, 0 &- (Int64(1) << Int64(shift)),
      ] {
        #expect(try DocumentCodec.decodeValue(DocumentCodec.encode(.integer(value))) == .integer(value))
      }
    }
    #expect(try DocumentCodec.decodeValue(DocumentCodec.encode(.double(-0.0))) == .double(-0.0))
    let point = Value.geoPoint(GeoPoint(latitude: -0.0, longitude: 0))
    #expect(try DocumentCodec.decodeValue(DocumentCodec.encode(point)) == point)
  }

  @Test("A vector is a map with the key `__type__` on the wire; such a map without doubles stays a map")
  func vectors() throws {
    let message = try Google_Firestore_V1_Value(serializedBytes: DocumentCodec.encode(.vector([1, 2.5])))
    #expect(message.mapValue.fields["__type__"]?.stringValue == "__vector__")
    #expect(message.mapValue.fields["value"]?.arrayValue.values.map(\.doubleValue) == [1, 2.5])
    let fake: Value = ["__type__": "__vector__", "value": [1]]
    #expect(try DocumentCodec.decodeValue(DocumentCodec.encode(fake)) == fake)
    let pending = Value.pendingServerTimestamp(
      PendingServerTimestamp(localWriteTime: Timestamp(microseconds: 5), previousValue: ["a": 1]))
    #expect(try DocumentCodec.decodeValue(DocumentCodec.encode(pending)) == pending)
    #expect(try Value(Google_Firestore_V1_Value(pending)) == pending)
  }

  @Test("Values without a type and pipeline values are rejected with Cloud Firestore's error message")
  func unset() throws {
    let unset = FirestoreError.invalidArgument("Cannot convert firestore.v1.Value with type unset.")
    #expect(Self.rejection([]) == unset)
    var array = Google_Firestore_V1_Value()
    array.arrayValue.values = [Google_Firestore_V1_Value()]
    #expect(Self.rejection(try array.serializedBytes()) == unset)
    var map = Google_Firestore_V1_Value()
    map.mapValue.fields = ["a": Google_Firestore_V1_Value()]
    #expect(Self.rejection(try map.serializedBytes()) == unset)
    #expect(throws: unset) { try Value(map) }
    for pipeline in [
      Google_Firestore_V1_Value.with { $0.fieldReferenceValue = "f" }, .with { $0.functionValue = .init() },
      .with { $0.pipelineValue = .init() }, .with { $0.variableReferenceValue = "v" },
    ] {
      let bytes: [UInt8] = try pipeline.serializedBytes()
      let error = try #require(Self.rejection(bytes))
      #expect(error.message.hasPrefix("Cannot convert firestore.v1.Value with type "))
      #expect(throws: error) { try Value(pipeline) }
    }
  }

  @Test("Invalid UTF-8, invalid references and deep nesting are rejected")
  func rejections() throws {
    // Text: an overlong slash, a lone surrogate, a lone continuation byte, a truncated character.
    for text: [UInt8] in [[0xC0, 0xAF], [0xED, 0xA0, 0x80], [0x80], [0xE2, 0x82]] {
      let error = Self.rejection([0x8A, 0x01, UInt8(text.count)] + text)
      #expect(error?.code == .invalidArgument)
    }
    #expect(
      Self.rejection(try Google_Firestore_V1_Value.with { $0.referenceValue = "x" }.serializedBytes()) != nil)
    var deep: Value = 1
    for _ in 0..<60 { deep = .map(["m": deep]) }
    #expect(Self.rejection(DocumentCodec.encode(deep)) == nil)
    for _ in 0..<10 { deep = .map(["m": deep]) }
    #expect(Self.rejection(DocumentCodec.encode(deep))?.code == .invalidArgument)
    // Recursion would overflow any stack.
    var bytes = DocumentCodec.encode(1)
    for _ in 0..<5000 {
      for head: UInt8 in [0x0A, 0x4A] { bytes = [head] + Self.varint(bytes.count) + bytes }
    }
    #expect(Self.rejection(bytes)?.code == .invalidArgument)
  }

  @Test(
    "Malformed wire bytes are rejected",
    arguments: [
      [0x08], [0x10, 0xFF], [0x19, 0, 0], [0x8A, 0x01, 5, 0x61], [0x00], [0x07], [0x0F, 0],
      [0x10, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], [0x0A, 0], [0x4A, 0x80],
      [0x08, 1, 0x0C], [0x0B, 0x08, 1], [0xFA, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0],
      [0x32, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
      // A tag of six bytes; five suffice for every field number.
      [0x98, 0xFF, 0xFF, 0x87, 0x87, 0x00, 1],
    ] as [[UInt8]])
  func malformed(bytes: [UInt8]) { #expect(Self.rejection(bytes)?.code == .invalidArgument) }

  @Test("Unknown fields and groups are skipped; if a value has several types, the last one is decoded")
  func unknownFields() throws {
    let unknown: [UInt8] = [
      0xA0, 0x06, 1, 0xA3, 0x06, 0x08, 1, 0xA4, 0x06, 0xA2, 0x06, 1, 0x61, 0xA5, 0x06, 1, 2, 3, 4,
    ]
    #expect(try DocumentCodec.decodeValue(unknown + [0x10, 5]) == 5)
    #expect(try DocumentCodec.decodeValue([0x10, 5, 0x08, 1] + unknown) == true)
  }

  @Test("Groups are skipped up to 100 levels, and rejected beyond")
  func deepGroups() throws {
    func nested(_ depth: Int) -> [UInt8] {
      (0..<depth).flatMap { _ in [0xA3, 0x06] as [UInt8] }
        + (0..<depth).flatMap { _ in [0xA4, 0x06] as [UInt8] }
    }
    #expect(try DocumentCodec.decodeValue(nested(100) + [0x10, 5]) == 5)
    #expect(Self.rejection(nested(101) + [0x10, 5])?.code == .invalidArgument)
  }

  @Test("Corrupted messages never crash, and the generated code accepts every message that the codec accepts")
  func corruption() throws {
    var source = RandomValues(seed: 43)
    var accepted = 0
    for _ in 0..<30_000 {
      var bytes = DocumentCodec.encode(source.value())
      for _ in 0..<1 + source.below(3) where !bytes.isEmpty {
        switch source.below(3) {
        case 0: bytes[source.below(bytes.count)] = UInt8(source.below(256))
        case 1: bytes.remove(at: source.below(bytes.count))
        default: bytes.insert(UInt8(source.below(256)), at: source.below(bytes.count))
        }
      }
      guard (try? DocumentCodec.decodeValue(bytes)) != nil else { continue }
      accepted += 1
      #expect(throws: Never.self) { try Google_Firestore_V1_Value(serializedBytes: bytes) }
    }
    #expect(accepted > 100)
  }
}
