// Converts Firestore's messages between JSON (proto3's mapping) and protobuf's wire format. REST and WebChannel
// thereby call the same methods, with the same checks, as gRPC. Decision 0019 compares this converter with SwiftProtobuf.
//
// Decision: docs/decisions/0019-proto3-json-by-hand.md

import FirestoreModel
import FirestoreWire
import JSON
import NIOCore
import RealtimeModel

/// Converts messages and query parameters between JSON and protobuf's wire format.
enum FirestoreJSON {
  /// The maximum nesting of JSON. It is above the limit of stored values, so a value that is nested too deeply gets that
  /// limit's error. The recursion for this depth fits the stack of any thread.
  static let maximumDepth = 160

  /// Converts a JSON message to wire format.
  /// - Throws: INVALID_ARGUMENT with the path of the invalid field.
  static func message(_ json: ByteBuffer, as name: MessageName) throws(FirestoreError) -> ByteBuffer {
    var writer = WireWriter(capacity: json.readableBytes)
    try write(json, as: name, to: &writer)
    return writer.finish()
  }

  /// Writes the fields of a JSON message. An empty string is an empty message.
  static func write(
    _ json: ByteBuffer, as name: MessageName, to writer: inout WireWriter
  ) throws(FirestoreError) {
    if json.readableBytes == 0 { return }
    var output = writer
    let failure = json.withUnsafeReadableBytes { bytes -> FirestoreError? in
      do throws(FirestoreError) {
        var reader = try JSONMessageReader(bytes, output)
        try reader.message(MessageSchema.of(name))
        try reader.finish()
        output = reader.writer
        return nil
      } catch {
        return error
      }
    }
    if let failure { throw failure }
    writer = output
  }

  /// Returns the value of a string member of an object, even if the object is not a valid message. Returns nil if the
  /// JSON has a syntax error before the member.
  static func text(of name: String, in json: ByteBuffer) -> String? {
    json.withUnsafeReadableBytes { bytes -> String? in
      do throws(JSONError) {
        var reader = try JSONReader(
          unsafeBytes: bytes, limits: JSONLimits(depth: maximumDepth, bytes: bytes.count))
        guard try reader.peekKind() == .object else { return nil }
        try reader.beginObject()
        while let key = try reader.nextKey() {
          if key == name, try reader.peekKind() == .string { return try reader.readString() }
          try reader.skipValue()
        }
      } catch {
        return nil
      }
      return nil
    }
  }

  /// Writes a message as JSON. The message must be encoded by this server, which places the values of a repeated field
  /// next to each other.
  static func write(
    _ message: ByteBuffer, as name: MessageName, to json: inout JSONWriter
  ) throws(FirestoreError) {
    var output = json
    let failure = message.withUnsafeReadableBytes { bytes -> FirestoreError? in
      do throws(FirestoreError) {
        try output.message(ProtobufReader(bytes), MessageSchema.of(name))
        return nil
      } catch {
        return error
      }
    }
    if let failure { throw failure }
    json = output
  }
}

extension FirestoreError {
  /// INVALID_ARGUMENT for invalid JSON or parameters. The details repeat the message, as Firebase's do.
  static func invalidPayload(_ message: String, at field: String = "") -> FirestoreError {
    var error = FirestoreError.invalidArgument(message)
    error.fieldViolations = [FieldViolation(field: field, description: message)]
    return error
  }
}
