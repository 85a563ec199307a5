// Computes the size of a document by Cloud Firestore's published formula.

/// Computes sizes in bytes. The limit of 1 MiB for a document and Cloud Firestore's storage use this measure.
public enum DocumentSize {
  /// The size of a document in bytes: its name, its fields and 32 bytes.
  public static func of(_ name: DocumentName, _ fields: MapValue) -> Int {
    of(path: name.path) + of(fields: fields) + 32
  }

  /// The size of a document's name: its ids and 16 bytes.
  public static func of(path: ResourcePath) -> Int {
    path.segments.reduce(16) { $0 + (ResourceID.number(in: $1) == nil ? of(text: $1) : 8) }
  }

  /// The size of a map: its keys and values.
  public static func of(fields: MapValue) -> Int {
    fields.entries.reduce(0) { $0 + of(text: $1.key) + of(value: $1.value) }
  }

  /// The size of a value.
  public static func of(value: Value) -> Int {
    switch value {
    case .null, .boolean: 1
    case .integer, .double, .timestamp, .pendingServerTimestamp: 8
    case .geoPoint: 16
    case .string(let text): of(text: text)
    case .bytes(let bytes): bytes.count
    case .reference(let name): of(path: name.path)
    case .array(let elements): elements.reduce(0) { $0 + of(value: $1) }
    case .vector(let numbers): numbers.count * 8
    case .map(let map): of(fields: map)
    }
  }

  private static func of(text: String) -> Int { text.utf8.count + 1 }
}
