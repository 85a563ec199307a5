// Validates the contents of a document once, before a write is applied. Stored documents need no further check.
//
// Invariant: every error is INVALID_ARGUMENT, with Cloud Firestore's error message where it is known.

/// The rules for stored fields.
public enum DocumentValidation {
  /// Checks all fields of a document, at every depth, and its size.
  public static func validate(
    _ fields: MapValue, of name: DocumentName, limits: FirestoreLimits = .standard
  ) throws(FirestoreError) {
    try validate(fields, limits: limits)
    try validateSize(fields, of: name, limits: limits)
  }

  /// Checks the size of a document.
  public static func validateSize(
    _ fields: MapValue, of name: DocumentName, limits: FirestoreLimits = .standard
  ) throws(FirestoreError) {
    let size = DocumentSize.of(name, fields)
    if size > limits.documentBytes {
      throw .invalidArgument(
        "Document '\(name)' cannot be written because its size (\(grouped(size)) bytes) exceeds the maximum "
          + "allowed size of \(grouped(limits.documentBytes)) bytes.")
    }
  }

  /// Checks fields at every depth.
  public static func validate(
    _ fields: MapValue, limits: FirestoreLimits = .standard
  ) throws(FirestoreError) {
    try validate(fields, depth: 0, pathBytes: 0, limits)
  }

  /// Checks a value that is to be stored in a field.
  public static func validate(
    _ value: Value, at property: String, limits: FirestoreLimits = .standard
  ) throws(FirestoreError) {
    try validate(value, property: property, depth: 0, pathBytes: property.utf8.count, inArray: false, limits)
  }

  /// Checks the name of a field.
  public static func validate(fieldName name: String) throws(FirestoreError) {
    if name.utf8.isEmpty { throw .invalidArgument("The property.name is the empty string.") }
    if name.utf8.count > Limits.fieldNameBytes {
      throw .invalidArgument("The property.name is longer than \(Limits.fieldNameBytes) bytes.")
    }
    if ResourceID.isReserved(name) {
      if let type = bsonTypes[name] {
        throw .invalidArgument("Value type \(type) is not allowed: field name \(name) is reserved")
      }
      throw .invalidArgument("field name \(name) is reserved")
    }
  }

  /// The value types of Firestore's Enterprise edition, by the reserved field name of the map that represents them.
  private static let bsonTypes = [
    "__oid__": "OBJECT_ID", "__int__": "INT", "__decimal128__": "DECIMAL128", "__regex__": "REGEX",
    "__binary__": "BYTES_WITH_SUBTYPE", "__request_timestamp__": "REQUEST_TIMESTAMP",
    "__min__": "MIN_VALUE", "__max__": "MAX_VALUE",
  ]

  /// Checks a path that a mask or transform names.
  public static func validate(written path: FieldPath) throws(FirestoreError) {
    for name in path.segments { try validate(fieldName: name) }
  }

  private static func validate(
    _ map: MapValue, depth: Int, pathBytes: Int, _ limits: FirestoreLimits
  ) throws(FirestoreError) {
    for entry in map.entries {
      try validate(fieldName: entry.key)
      let pathBytes = pathBytes + (depth == 0 ? 0 : 1) + entry.key.utf8.count
      if pathBytes > Limits.fieldPathBytes {
        throw .invalidArgument(
          "The path of property \"\(entry.key.prefix(64))\" is longer than \(Limits.fieldPathBytes) bytes.")
      }
      try validate(
        entry.value, property: entry.key, depth: depth, pathBytes: pathBytes, inArray: false, limits)
    }
  }

  private static func validate(
    _ value: Value, property: String, depth: Int, pathBytes: Int, inArray: Bool, _ limits: FirestoreLimits
  ) throws(FirestoreError) {
    switch value {
    case .null, .boolean, .integer, .double: break
    case .reference(let name):
      // A parsed reference is within this limit, but a reference made from parts may exceed it.
      if name.description.utf8.count > Limits.documentNameBytes {
        throw .invalidArgument(
          "The reference in property \"\(property)\" is longer than \(Limits.documentNameBytes) bytes.")
      }
    case .string(let text): try validate(count: text.utf8.count, property: property, limits)
    case .bytes(let bytes): try validate(count: bytes.count, property: property, limits)
    case .timestamp(let time):
      guard time.isInRange else {
        throw .invalidArgument("The timestamp in property \"\(property)\" is outside of years 0001 to 9999.")
      }
    case .geoPoint(let point): try validate(point)
    case .vector(let numbers):
      if numbers.isEmpty { throw .invalidArgument("Cannot have a zero length vector.") }
      guard numbers.count <= limits.vectorDimensions else {
        throw .invalidArgument(
          "The vector in property \"\(property)\" has more than \(limits.vectorDimensions) dimensions.")
      }
    case .pendingServerTimestamp: throw .invalidArgument("field name __type__ is reserved")
    case .array(let elements):
      if inArray { throw .invalidArgument("Nested arrays are not allowed") }
      try validate(depth: depth + 1, property: property, limits)
      for element in elements {
        try validate(
          element, property: property, depth: depth + 1, pathBytes: pathBytes, inArray: true, limits)
      }
    case .map(let map):
      try validate(depth: depth + 1, property: property, limits)
      try validate(map, depth: depth + 1, pathBytes: pathBytes, limits)
    }
  }

  private static func validate(
    depth: Int, property: String, _ limits: FirestoreLimits
  ) throws(FirestoreError) {
    if depth > limits.valueDepth {
      throw .invalidArgument(
        "Property \(property) is nested more than \(limits.valueDepth) levels of maps and arrays deep.")
    }
  }

  private static func validate(
    count: Int, property: String, _ limits: FirestoreLimits
  ) throws(FirestoreError) {
    if count > limits.valueBytes {
      throw .invalidArgument(
        "The value of property \"\(property)\" is longer than \(limits.valueBytes) bytes.")
    }
  }

  private static func validate(_ point: GeoPoint) throws(FirestoreError) {
    if !(point.latitude >= -90 && point.latitude <= 90) {
      throw .invalidArgument(
        "Geo point latitude '\(point.latitude)' outside permitted range -90.0 to 90.0.")
    }
    if !(point.longitude >= -180 && point.longitude <= 180) {
      throw .invalidArgument(
        "Geo point longitude '\(point.longitude)' outside permitted range -180.0 to 180.0.")
    }
  }

  /// A number with commas between thousands.
  private static func grouped(_ number: Int) -> String {
    var text = ""
    let digits = String(number)
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { text.append(",") }
      text.append(digit)
    }
    return text
  }
}
