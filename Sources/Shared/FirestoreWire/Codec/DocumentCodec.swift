// Encodes and decodes values, field maps and documents, as the engine stores them and responses carry them.
//
// Invariant: the bytes are the public API's messages, so that stored documents go into responses without decoding.

public import FirestoreModel

/// Encodes and decodes documents and their parts.
public enum DocumentCodec {
  /// Encodes a `Value` message.
  public static func encode(_ value: Value) -> [UInt8] {
    var writer = ProtobufWriter(capacity: 128)
    writer.value(value)
    return writer.finish()
  }

  /// Reads a `Value` message; INVALID_ARGUMENT if it is malformed.
  public static func decodeValue(_ bytes: [UInt8]) throws(FirestoreError) -> Value {
    try decode(bytes) { reader throws(FirestoreError) in try reader.value() }
  }

  /// Encodes a `MapValue` message with these fields.
  public static func encode(fields: MapValue) -> [UInt8] {
    var writer = ProtobufWriter()
    writer.fields(fields, at: 1)
    return writer.finish()
  }

  /// Reads a `MapValue` message; INVALID_ARGUMENT if it is malformed.
  public static func decodeFields(_ bytes: [UInt8]) throws(FirestoreError) -> MapValue {
    try decode(bytes) { reader throws(FirestoreError) in try reader.fields() }
  }

  /// Encodes a `Document` message.
  public static func encode(_ document: Document) -> [UInt8] {
    var writer = ProtobufWriter(capacity: 1024)
    writer.document(document)
    return writer.finish()
  }

  /// Reads a `Document` message. Absent times become the epoch. INVALID_ARGUMENT if it is malformed.
  public static func decode(_ bytes: [UInt8]) throws(FirestoreError) -> Document {
    try decode(bytes) { reader throws(FirestoreError) in try reader.document() }
  }

  /// Calls `body` with a reader over an array's bytes.
  static func decode<R>(
    _ bytes: [UInt8], _ body: (inout ProtobufReader) throws(FirestoreError) -> R
  ) throws(FirestoreError) -> R {
    let result = bytes.withUnsafeBytes { buffer -> Result<R, FirestoreError> in
      var reader = ProtobufReader(buffer)
      do throws(FirestoreError) {
        return .success(try body(&reader))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }
}

extension ProtobufWriter {
  /// Writes the content of a `Document` message.
  mutating func document(_ document: Document) {
    timestamp(document.updateTime, at: 4)
    timestamp(document.createTime, at: 3)
    fields(document.fields, at: 2)
    let mark = count
    documentName(document.name)
    lengthPrefix(1, since: mark)
  }
}

extension ProtobufReader {
  /// Reads a `Document` message to its end. Absent times become the epoch.
  public mutating func document() throws(FirestoreError) -> Document { try document(named: nil) }

  /// Reads a `Document` message to its end.
  ///
  /// - Parameter earlier: the name in an earlier occurrence of the field. It applies if this message has no name.
  mutating func document(named earlier: DocumentName?) throws(FirestoreError) -> Document {
    var name = earlier
    var entries: [MapValue.Entry] = []
    var createTime = Timestamp.epoch
    var updateTime = Timestamp.epoch
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        name = try DocumentName(parsing: try string(tag))
      case 2:
        var nested = try message(tag)
        entries.append(try nested.entry(depth: 0))
      case 3:
        var nested = try message(tag)
        createTime = try nested.timestamp()
      case 4:
        var nested = try message(tag)
        updateTime = try nested.timestamp()
      default: try skip(tag)
      }
    }
    guard let name else { throw .invalidArgument("Document name \"\" lacks \"projects\" at index 0.") }
    return Document(
      name: name, fields: MapValue(unsorted: entries), createTime: createTime, updateTime: updateTime)
  }
}
