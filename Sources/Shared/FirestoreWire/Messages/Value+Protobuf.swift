// Converts values, documents and times between the generated messages and the model.
//
// JSON and infrequent requests use these conversions; hot paths use `DocumentCodec`. Tests check that both give the
// same values.

public import FirestoreModel
public import FirestoreProtobuf
public import SwiftProtobuf

extension Timestamp {
  /// The time in a message.
  public init(_ message: Google_Protobuf_Timestamp) {
    self.init(seconds: message.seconds, nanoseconds: message.nanos)
  }
}

extension Google_Protobuf_Timestamp {
  /// The message for a time.
  public init(_ time: Timestamp) { self.init(seconds: time.seconds, nanos: time.nanoseconds) }
}

extension Value {
  /// The value in a message.
  ///
  /// - Throws: INVALID_ARGUMENT if no value is set, or for types that occur only in pipelines.
  public init(_ message: Google_Firestore_V1_Value) throws(FirestoreError) {
    switch message.valueType {
    case .nullValue: self = .null
    case .booleanValue(let value): self = .boolean(value)
    case .integerValue(let value): self = .integer(value)
    case .doubleValue(let value): self = .double(value)
    case .timestampValue(let value): self = .timestamp(Timestamp(value))
    case .stringValue(let value): self = .string(value)
    case .bytesValue(let value): self = .bytes([UInt8](value))
    case .referenceValue(let name): self = .reference(try DocumentName(parsing: name))
    case .geoPointValue(let point):
      self = .geoPoint(GeoPoint(latitude: point.latitude, longitude: point.longitude))
    case .arrayValue(let array): self = .array(try [Value](array))
    case .mapValue(let map): self = ProtobufReader.valueOfMarkedMap(try MapValue(map.fields))
    case .fieldReferenceValue: throw Value.notStorable("field_reference_value")
    case .variableReferenceValue: throw Value.notStorable("variable_reference_value")
    case .functionValue: throw Value.notStorable("function_value")
    case .pipelineValue: throw Value.notStorable("pipeline_value")
    case nil: throw Value.notStorable("unset")
    }
  }

  static func notStorable(_ type: String) -> FirestoreError {
    .invalidArgument("Cannot convert firestore.v1.Value with type \(type).")
  }
}

extension [Value] {
  /// The elements of an array message.
  public init(_ message: Google_Firestore_V1_ArrayValue) throws(FirestoreError) {
    try self.init(message.values)
  }

  init(_ messages: [Google_Firestore_V1_Value]) throws(FirestoreError) {
    self.init()
    reserveCapacity(messages.count)
    for message in messages { append(try Value(message)) }
  }
}

extension MapValue {
  /// The fields of a document or map message.
  public init(_ fields: [String: Google_Firestore_V1_Value]) throws(FirestoreError) {
    var entries: [Entry] = []
    entries.reserveCapacity(fields.count)
    for (key, value) in fields { entries.append(Entry(key: key, value: try Value(value))) }
    self.init(unsorted: entries)
  }

  /// The fields as messages.
  var messages: [String: Google_Firestore_V1_Value] {
    var fields: [String: Google_Firestore_V1_Value] = [:]
    fields.reserveCapacity(count)
    for entry in entries { fields[entry.key] = Google_Firestore_V1_Value(entry.value) }
    return fields
  }
}

extension Google_Firestore_V1_ArrayValue {
  /// The message for elements.
  public init(_ elements: [Value]) {
    self.init()
    values = elements.map { Google_Firestore_V1_Value($0) }
  }
}

extension Google_Firestore_V1_Value {
  /// The message for a value.
  public init(_ value: Value) {
    self.init()
    switch value {
    case .null: nullValue = .nullValue
    case .boolean(let value): booleanValue = value
    case .integer(let value): integerValue = value
    case .double(let value): doubleValue = value
    case .timestamp(let value): timestampValue = Google_Protobuf_Timestamp(value)
    case .string(let value): stringValue = value
    case .bytes(let value): bytesValue = value.messageBytes
    case .reference(let name): referenceValue = name.description
    case .geoPoint(let point):
      geoPointValue.latitude = point.latitude
      geoPointValue.longitude = point.longitude
    case .array(let elements): arrayValue = Google_Firestore_V1_ArrayValue(elements)
    case .map(let map): mapValue.fields = map.messages
    case .vector(let numbers):
      mapValue.fields = [
        "__type__": Google_Firestore_V1_Value("__vector__"),
        "value": Google_Firestore_V1_Value(.array(numbers.map { .double($0) })),
      ]
    case .pendingServerTimestamp(let pending):
      mapValue.fields = [
        "__type__": Google_Firestore_V1_Value("server_timestamp"),
        "__local_write_time__": Google_Firestore_V1_Value(.timestamp(pending.localWriteTime)),
      ]
      if let previous = pending.previousValue {
        mapValue.fields["__previous_value__"] = Google_Firestore_V1_Value(previous)
      }
    }
  }
}

extension Document {
  /// The document in a message. Absent times become the epoch.
  public init(_ message: Google_Firestore_V1_Document) throws(FirestoreError) {
    self.init(
      name: try DocumentName(parsing: message.name), fields: try MapValue(message.fields),
      createTime: Timestamp(message.createTime), updateTime: Timestamp(message.updateTime))
  }
}

extension Google_Firestore_V1_Document {
  /// The message for a document.
  public init(_ document: Document) {
    self.init()
    name = document.name.description
    fields = document.fields.messages
    createTime = Google_Protobuf_Timestamp(document.createTime)
    updateTime = Google_Protobuf_Timestamp(document.updateTime)
  }

  /// The message for the fields of a write, without times.
  public init(name: DocumentName, fields: MapValue) {
    self.init()
    self.name = name.description
    self.fields = fields.messages
  }
}
