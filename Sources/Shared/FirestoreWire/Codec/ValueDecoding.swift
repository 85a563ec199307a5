// Decodes values directly into the model, without the generated messages.
//
// Invariant: decoded values are well formed: they have valid UTF-8 and parsed references. The model's validation
// decides whether they can be stored.
//
// The field `__type__` of a map marks a vector or, in a client's cache, a pending server timestamp. The decoder
// converts such a map to the marked type. A map with a malformed mark stays a map; validation rejects its reserved key.

public import FirestoreModel

extension ProtobufReader {
  /// The maximum nesting depth of values: above every limit of the model, and low enough for the stack of any thread.
  static let depthLimit = 64

  /// Reads a `Value` message to its end.
  public mutating func value() throws(FirestoreError) -> Value { try value(depth: 0) }

  /// Reads a message to its end and returns its field `fieldNumber`, a map of values. Other fields are skipped.
  public mutating func fields(at fieldNumber: Int = 1) throws(FirestoreError) -> MapValue {
    try map(at: fieldNumber, depth: 0)
  }

  private mutating func value(depth: Int) throws(FirestoreError) -> Value {
    var value: Value?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        value = .boolean(try varint(tag) != 0)
      case 2:
        value = .integer(Int64(bitPattern: try varint(tag)))
      case 3:
        value = .double(try double(tag))
      case 5:
        value = .reference(try DocumentName(parsing: try string(tag)))
      case 6:
        var nested = try message(tag)
        value = ProtobufReader.merged(
          value, ProtobufReader.valueOfMarkedMap(try nested.map(at: 1, depth: depth + 1)))
      case 8:
        var nested = try message(tag)
        if case .geoPoint(let earlier)? = value {
          value = .geoPoint(try nested.geoPoint(onto: earlier))
        } else {
          value = .geoPoint(try nested.geoPoint())
        }
      case 9:
        var nested = try message(tag)
        value = ProtobufReader.merged(value, .array(try nested.array(depth: depth + 1)))
      case 10:
        var nested = try message(tag)
        if case .timestamp(let earlier)? = value {
          value = .timestamp(try nested.timestamp(onto: earlier))
        } else {
          value = .timestamp(try nested.timestamp())
        }
      case 11:
        _ = try varint(tag)
        value = .null
      case 17:
        value = .string(try string(tag))
      case 18:
        value = .bytes(try bytes(tag))
      case 19...22:
        throw .invalidArgument(
          "Cannot convert firestore.v1.Value with type \(ProtobufReader.unsupportedTypeNames[tag.field - 19])."
        )
      default: try skip(tag)
      }
    }
    guard let value else {
      throw .invalidArgument("Cannot convert firestore.v1.Value with type unset.")
    }
    return value
  }

  /// Merges two occurrences of a field, by protobuf's rule for nested messages: map fields and array elements are
  /// appended, all other values are replaced.
  private static func merged(_ earlier: Value?, _ later: Value) -> Value {
    switch (earlier, later) {
    case (.map(let a)?, .map(let b)): .map(MapValue(unsorted: a.entries + b.entries))
    case (.array(let a)?, .array(let b)): .array(a + b)
    default: later
    }
  }

  private static let unsupportedTypeNames = [
    "field_reference_value", "function_value", "pipeline_value", "variable_reference_value",
  ]

  /// The values of an `ArrayValue` message.
  mutating func array(depth: Int = 1) throws(FirestoreError) -> [Value] {
    try ProtobufReader.check(depth)
    var elements: [Value] = []
    while let tag = try nextTag() {
      guard tag.field == 1 else {
        try skip(tag)
        continue
      }
      var nested = try message(tag)
      elements.append(try nested.value(depth: depth))
    }
    return elements
  }

  private mutating func map(at fieldNumber: Int, depth: Int) throws(FirestoreError) -> MapValue {
    try ProtobufReader.check(depth)
    var entries: [MapValue.Entry] = []
    while let tag = try nextTag() {
      guard tag.field == fieldNumber else {
        try skip(tag)
        continue
      }
      var nested = try message(tag)
      entries.append(try nested.entry(depth: depth))
    }
    return MapValue(unsorted: entries)
  }

  /// One entry of a map of values.
  mutating func entry(depth: Int) throws(FirestoreError) -> MapValue.Entry {
    var key = ""
    var value: Value?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        key = try string(tag)
      case 2:
        var nested = try message(tag)
        value = ProtobufReader.merged(value, try nested.value(depth: depth))
      default: try skip(tag)
      }
    }
    guard let value else {
      throw .invalidArgument("Cannot convert firestore.v1.Value with type unset.")
    }
    return MapValue.Entry(key: key, value: value)
  }

  private static func check(_ depth: Int) throws(FirestoreError) {
    if depth > depthLimit {
      throw .invalidArgument("Values are nested more than \(depthLimit) levels deep.")
    }
  }

  /// A `google.protobuf.Timestamp`.
  package mutating func timestamp(onto earlier: Timestamp = .epoch) throws(FirestoreError) -> Timestamp {
    var time = earlier
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        time.seconds = Int64(bitPattern: try varint(tag))
      case 2:
        time.nanoseconds = Int32(truncatingIfNeeded: try varint(tag))
      default: try skip(tag)
      }
    }
    return time
  }

  private mutating func geoPoint(
    onto earlier: GeoPoint = GeoPoint(latitude: 0, longitude: 0)
  ) throws(FirestoreError) -> GeoPoint {
    var point = earlier
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        point.latitude = try double(tag)
      case 2:
        point.longitude = try double(tag)
      default: try skip(tag)
      }
    }
    return point
  }

  /// The vector or pending server timestamp if the map is marked as one by `__type__`; any other map unchanged.
  static func valueOfMarkedMap(_ map: MapValue) -> Value {
    guard map.count >= 2, map.count <= 3, case .string(let mark)? = map["__type__"] else { return .map(map) }
    if mark == "server_timestamp", case .timestamp(let time)? = map["__local_write_time__"] {
      return .pendingServerTimestamp(
        PendingServerTimestamp(localWriteTime: time, previousValue: map["__previous_value__"]))
    }
    guard mark == "__vector__", map.count == 2, case .array(let elements)? = map["value"] else {
      return .map(map)
    }
    var vector: [Double] = []
    vector.reserveCapacity(elements.count)
    for element in elements {
      guard case .double(let number) = element else { return .map(map) }
      vector.append(number)
    }
    return .vector(vector)
  }
}
