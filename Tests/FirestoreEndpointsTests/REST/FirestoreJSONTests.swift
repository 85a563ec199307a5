// Compares the JSON conversion with that of SwiftProtobuf. Also compares the schema tables, which list the JSON members of
// each message, with the .proto files.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import JSON
import NIOCore
import RandomModels
import RealtimeModel
import SwiftProtobuf
import Testing

@testable import FirestoreEndpoints

@Suite("Firestore JSON")
struct FirestoreJSONTests {
  private func json(_ bytes: [UInt8], as name: MessageName) throws -> String {
    var writer = JSONWriter()
    try FirestoreJSON.write(ByteBuffer(bytes: bytes), as: name, to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private func bytes(_ json: String, as name: MessageName) throws -> [UInt8] {
    Array(try FirestoreJSON.message(ByteBuffer(string: json), as: name).readableBytesView)
  }

  private func value(_ bytes: [UInt8]) throws -> Value {
    let result: Result<Value, FirestoreError> = bytes.withUnsafeBytes { raw in
      do throws(FirestoreError) {
        var reader = ProtobufReader(raw)
        return .success(try reader.value())
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  @Test(
    "random values survive a round trip, also through SwiftProtobuf", arguments: 0..<40
  )
  func randomValues(seed: UInt64) throws {
    var random = RandomValues(seed: seed)
    for _ in 0..<50 {
      let bytes = DocumentCodec.encode(random.value())
      let text = try json(bytes, as: .value)
      let converted = try value(try self.bytes(text, as: .value))
      #expect(DocumentCodec.encode(converted) == bytes, "\(text)")

      let reference = try Google_Firestore_V1_Value(jsonString: text)
      let referenceValue = try value(try reference.serializedBytes())
      #expect(DocumentCodec.encode(referenceValue) == bytes, "\(text)")
      let back = try value(try self.bytes(try reference.jsonString(), as: .value))
      #expect(DocumentCodec.encode(back) == bytes, "\(text)")
    }
  }

  @Test("the schema tables match the .proto files")
  func schemaTables() throws {
    let protos = try ProtoFiles()
    #expect(protos.messages.count == MessageName.allCases.count)
    for name in MessageName.allCases {
      let declared = try #require(protos.messages[name.rawValue], "\(name.rawValue)")
      let schema = MessageSchema.of(name)
      let schemaFields = Dictionary(uniqueKeysWithValues: schema.fields.map { ($0.name, $0) })
      let expectedFields = declared.filter { !ProtoFiles.omitted.contains($0.type) }
      for field in expectedFields {
        let schemaField = try #require(schemaFields[field.name], "\(name.rawValue).\(field.name)")
        #expect(schemaField.number == field.number, "\(name.rawValue).\(field.name)")
        let isList = if case .list = schemaField.kind { true } else { false }
        #expect(isList == field.isRepeated, "\(name.rawValue).\(field.name)")
        #expect(schemaField.oneof == field.oneof, "\(name.rawValue).\(field.name)")
        #expect(
          ProtoFiles.matches(field.type, schemaField.kind), "\(name.rawValue).\(field.name) \(field.type)")
      }
      #expect(expectedFields.count == schema.fields.count)
    }
    for name in EnumerationName.allCases {
      let declared = try #require(protos.enumerations[name.rawValue])
      let values = Dictionary(uniqueKeysWithValues: name.values.map { ($0.name, Int($0.number)) })
      #expect(values == declared)
    }
  }

  @Test(
    "every JSON form of a value is accepted",
    arguments: [
      ("{\"nullValue\":null}", Value.null), ("{\"nullValue\":\"NULL_VALUE\"}", .null),
      ("{\"null_value\":0}", .null),
      ("{\"integerValue\":\"-9223372036854775808\"}", .integer(.min)), ("{\"integerValue\":5}", .integer(5)),
      ("{\"integerValue\":\"5.0\"}", .integer(5)), ("{\"integerValue\":1e3}", .integer(1000)),
      ("{\"doubleValue\":\"-0\"}", .double(-0.0)), ("{\"doubleValue\":-0}", .double(-0.0)),
      ("{\"doubleValue\":-0.0}", .double(-0.0)), ("{\"doubleValue\":\"1.5e2\"}", .double(150)),
      ("{\"doubleValue\":\"-Infinity\"}", .double(-.infinity)), ("{\"doubleValue\":7}", .double(7)),
      ("{\"booleanValue\":false}", .boolean(false)),
      ("{\"stringValue\":\"\\u00e4\\ud83d\\ude00\"}", .string("ä😀")),
      ("{\"bytesValue\":\"-_8=\"}", .bytes([0xFB, 0xFF])),
      ("{\"bytesValue\":\"+/8\"}", .bytes([0xFB, 0xFF])),
      ("{\"timestampValue\":\"1970-01-01T00:00:00Z\"}", .timestamp(.epoch)),
      (
        "{\"timestampValue\":\"2000-02-29T23:59:59.5+01:30\"}",
        .timestamp(Timestamp(seconds: 951_863_399, nanoseconds: 500_000_000))
      ),
      (
        "{\"timestampValue\":\"0001-01-01T00:00:00.000000001Z\"}",
        .timestamp(Timestamp(seconds: -62_135_596_800, nanoseconds: 1))
      ),
      ("{\"geoPointValue\":{\"latitude\":1}}", .geoPoint(GeoPoint(latitude: 1, longitude: 0))),
      ("{\"arrayValue\":{}}", .array([])), ("{\"mapValue\":{}}", .map([:])),
      ("{\"arrayValue\":{\"values\":[{\"nullValue\":null}]},\"stringValue\":null}", .array([.null])),
    ])
  func spellings(json: String, expected: Value) throws {
    let read = try value(try bytes(json, as: .value))
    #expect(DocumentCodec.encode(read) == DocumentCodec.encode(expected))
  }

  @Test(
    "an error names the path of its field",
    arguments: [
      (
        "{\"writes\":[{\"update\":{\"fields\":{\"a\":{\"stringvalue\":\"x\"}}}}]}",
        "Invalid JSON payload received. Unknown name \"stringvalue\" at 'writes[0].update.fields[0].value': Cannot find field."
      ),
      ("{\"nonsense\":1}", "Invalid JSON payload received. Unknown name \"nonsense\": Cannot find field."),
      (
        "{\"transaction\":\"a*b\"}",
        "Invalid value at 'transaction' (TYPE_BYTES), Base64 decoding failed for \"a*b\""
      ),
      (
        "{\"transaction\":\"abcde\"}",
        "Invalid value at 'transaction' (TYPE_BYTES), Base64 decoding failed for \"abcde\""
      ),
      ("{\"database\":5}", "Invalid value at 'database' (TYPE_STRING), 5"),
      (
        "{\"writes\":{}}",
        "Invalid value at 'writes' (type.googleapis.com/google.firestore.v1.Write), Starting an object"
      ),
      (
        "{\"writes\":[null]}",
        "Invalid value at 'writes[0]' (type.googleapis.com/google.firestore.v1.Write), null"
      ),
      (
        "{\"writes\":[{\"currentDocument\":{\"exists\":true,\"updateTime\":\"2000-01-01T00:00:00Z\"}}]}",
        "Invalid value at 'writes[0].current_document' (oneof), oneof field 'condition_type' is already set. Cannot set 'updateTime'"
      ),
      (
        "{\"writes\":[{\"currentDocument\":{\"updateTime\":\"2000-13-01T00:00:00Z\"}}]}",
        "Invalid value at 'writes[0].current_document.update_time' (type.googleapis.com/google.protobuf.Timestamp), \"2000-13-01T00:00:00Z\", Illegal timestamp format; timestamps must end with 'Z' or have a valid timezone offset."
      ),
      (
        "{\"writes\":[{\"updateTransforms\":[{\"setToServerValue\":\"NOW\"}]}]}",
        "Invalid value at 'writes[0].update_transforms[0].set_to_server_value' (type.googleapis.com/google.firestore.v1.DocumentTransform.FieldTransform.ServerValue), \"NOW\""
      ),
      (
        "{\"writes\":[{\"update\":{\"fields\":{\"a\":{\"integerValue\":\"9223372036854775808\"}}}}]}",
        "Invalid value at 'writes[0].update.fields[0].value.integer_value' (TYPE_INT64), \"9223372036854775808\""
      ),
      (
        "{\"writes\":[{\"update\":{\"fields\":{\"a\":{\"integerValue\":1.5}}}}]}",
        "Invalid value at 'writes[0].update.fields[0].value.integer_value' (TYPE_INT64), 1.5"
      ),
      (
        "{\"writes\":[{\"update\":{\"fields\":{\"a\":{\"doubleValue\":\"0x10\"}}}}]}",
        "Invalid value at 'writes[0].update.fields[0].value.double_value' (TYPE_DOUBLE), \"0x10\""
      ),
      (
        "{\"database\":\"a\",\"database\":\"b\"}",
        "Invalid value at 'database', the name \"database\" is already set."
      ),
      (
        "[]", "Invalid value at '' (type.googleapis.com/google.firestore.v1.CommitRequest), Starting an array"
      ),
    ])
  func errorPaths(json: String, message: String) throws {
    let error = #expect(throws: FirestoreError.self) { _ = try bytes(json, as: .commitRequest) }
    #expect(error?.code == .invalidArgument && error?.message == message)
    #expect(error?.fieldViolations.map(\.description) == [message])
  }

  @Test(
    "invalid JSON is an error wherever it occurs",
    arguments: ["{", "{\"a\"", "{}x", "{\"database\":\"\\ud800\"}", "nonsense", "{\"database\":}", "\u{0}"])
  func malformed(json: String) throws {
    let error = #expect(throws: FirestoreError.self) { _ = try bytes(json, as: .commitRequest) }
    #expect(error?.code == .invalidArgument)
  }

  @Test("field names are compared by bytes: two encodings of a letter are two fields")
  func fieldNamesByBytes() throws {
    let json = "{\"fields\":{\"\u{E9}\":{\"integerValue\":1},\"e\u{301}\":{\"integerValue\":2}}}"
    let back = try self.json(try bytes(json, as: .mapValue), as: .mapValue)
    #expect(
      back.utf8.elementsEqual(json.replacing(":1}", with: ":\"1\"}").replacing(":2}", with: ":\"2\"}").utf8))
  }

  @Test("excessive nesting is an error and does not overflow the stack")
  func depth() throws {
    let deep = String(repeating: "{\"arrayValue\":{\"values\":[", count: 100_000)
    let error = #expect(throws: FirestoreError.self) { _ = try bytes(deep, as: .value) }
    #expect(error?.code == .invalidArgument)
    // As over gRPC, the model rejects a value that is slightly too deep.
    let open = String(repeating: "{\"mapValue\":{\"fields\":{\"a\":", count: 21)
    _ = try bytes(open + "{\"nullValue\":null}" + String(repeating: "}}}", count: 21), as: .value)
  }

  @Test(
    "timestamps have 0, 3, 6 or 9 fractional digits",
    arguments: [
      (0, "1970-01-01T00:00:00Z"), (500_000_000, "1970-01-01T00:00:00.500Z"),
      (1_000, "1970-01-01T00:00:00.000001Z"),
      (1, "1970-01-01T00:00:00.000000001Z"),
    ])
  func fractions(nanoseconds: Int32, text: String) {
    #expect(Timestamp(seconds: 0, nanoseconds: nanoseconds).rfc3339 == text)
  }

  @Test("random timestamps survive a round trip")
  func times() {
    var random = SeededGenerator(seed: 1)
    for _ in 0..<2000 {
      let seconds = Int64.random(in: Timestamp.minimum.seconds...Timestamp.maximum.seconds, using: &random)
      let time = Timestamp(seconds: seconds, nanoseconds: Int32(random.below(1_000_000_000)))
      #expect(Timestamp(rfc3339: time.rfc3339) == time)
    }
  }

  @Test(
    "an invalid timestamp is rejected",
    arguments: [
      "", "2000-01-01", "2000-01-01T00:00:00", "2000-02-30T00:00:00Z", "2001-02-29T00:00:00Z",
      "0000-01-01T00:00:00Z",
      "2000-01-01T24:00:00Z", "2000-01-01T00:00:60Z", "2000-01-01T00:00:00.Z",
      "2000-01-01T00:00:00.1234567890Z",
      "2000-01-01T00:00:00+1:00", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
      "2000-01-01T00:00:00Zx",
      "2000-01-01t00:00:00Z", "20000-01-01T00:00:00Z",
    ])
  func invalidTimestamps(text: String) { #expect(Timestamp(rfc3339: text) == nil) }

  @Test("damaged JSON never crashes the reader")
  func damagedJSON() throws {
    var random = SeededGenerator(seed: 7)
    let sample = Array(
      "{\"writes\":[{\"update\":{\"name\":\"n\",\"fields\":{\"a\":{\"mapValue\":{\"fields\":{\"b\":{\"doubleValue\":1e5}}}}}},\"updateMask\":{\"fieldPaths\":[\"a\"]}}]}"
        .utf8)
    for _ in 0..<3000 {
      var text = sample
      for _ in 0...random.below(4) {
        let index = random.below(text.count)
        switch random.below(3) {
        case 0: text[index] = UInt8.random(in: .min ... .max, using: &random)
        case 1: text.remove(at: index)
        default: text.insert(contentsOf: sample[random.below(sample.count)...].prefix(9), at: index)
        }
      }
      _ = try? FirestoreJSON.message(ByteBuffer(bytes: text), as: .commitRequest)
    }
  }
}
