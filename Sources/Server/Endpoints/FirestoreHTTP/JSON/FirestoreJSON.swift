// Firestore's messages between JSON and the wire format of protobuf, as proto3's JSON mapping has it. What comes in as
// JSON becomes the bytes that gRPC would have carried, and what goes out was such bytes: REST and WebChannel serve the
// same methods with the same checks.

import FirestoreModel
import FirestoreWire
import JSON
import NIOCore
import RealtimeModel

enum FirestoreJSON {
  /// Levels of JSON inside each other that are read: above what the deepest value takes, whose own limit has a better
  /// message, and low enough for any thread's stack.
  static let depth = 160

  /// The wire bytes of a message that comes as JSON.
  /// - Throws: INVALID_ARGUMENT that names the field which is wrong.
  static func message(_ json: ByteBuffer, as name: MessageName) throws(FirestoreError) -> ByteBuffer {
    var writer = WireWriter(capacity: json.readableBytes)
    try write(json, as: name, to: &writer)
    return writer.finish()
  }

  /// Writes the fields of a message that comes as JSON; an empty text stands for an empty message.
  static func write(
    _ json: ByteBuffer, as name: MessageName, to writer: inout WireWriter
  ) throws(FirestoreError) {
    if json.readableBytes == 0 { return }
    var output = writer
    let failure = json.withUnsafeReadableBytes { bytes -> FirestoreError? in
      do throws(FirestoreError) {
        var reader = try JSONMessageReader(bytes, output)
        try reader.message(MessageShape.of(name))
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

  /// The text that an object has by a name, whatever its other members hold; nil if there is none before the place where
  /// the object stops being JSON.
  static func text(of name: String, in json: ByteBuffer) -> String? {
    json.withUnsafeReadableBytes { bytes -> String? in
      do throws(JSONError) {
        var reader = try JSONReader(
          unsafeBytes: bytes, limits: JSONLimits(depth: depth, bytes: bytes.count))
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

  /// Writes a message as JSON. The bytes are this server's own: the occurrences of a field stand together.
  static func write(
    _ message: ByteBuffer, as name: MessageName, to json: inout JSONWriter
  ) throws(FirestoreError) {
    var output = json
    let failure = message.withUnsafeReadableBytes { bytes -> FirestoreError? in
      do throws(FirestoreError) {
        try output.message(ProtobufReader(bytes), MessageShape.of(name))
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
  /// INVALID_ARGUMENT for JSON or parameters that are no request; the details repeat the message, as the product's do.
  static func unreadable(_ message: String, at field: String = "") -> FirestoreError {
    var error = FirestoreError.invalidArgument(message)
    error.fieldViolations = [FieldViolation(field: field, description: message)]
    return error
  }
}
