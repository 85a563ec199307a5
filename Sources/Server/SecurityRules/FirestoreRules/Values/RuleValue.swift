// A value of the rules language.
//
// Stored documents are not converted: maps and lists wrap the model's values and convert an item when a rule reads it.

package import FirestoreModel

/// A value that an expression of a rule has.
package enum RuleValue: Sendable {
  /// Null.
  case null
  /// A boolean.
  case bool(Bool)
  /// A 64-bit integer.
  case int(Int64)
  /// A 64-bit float.
  case float(Double)
  /// Text.
  case string(RuleText)
  /// Bytes.
  case bytes([UInt8])
  /// A point in time.
  case timestamp(Timestamp)
  /// A span of time.
  case duration(RuleDuration)
  /// A geographic point.
  case latlng(GeoPoint)
  /// A path, such as `/databases/(default)/documents/users/u1`.
  case path(RulePath)
  /// An ordered list.
  case list(RuleList)
  /// A map with text as keys.
  case map(RuleMap)
  /// An unordered set.
  case set(RuleSet)
  /// The difference of two maps.
  case mapDiff(RuleMapDiff)
  /// A vector; rules only compare it.
  case vector([Double])
  /// Knowledge about a field from the filters of a query.
  case constraint(RuleConstraint)
  /// A path whose segments are unknown, because a query does not name its documents. It is the value of a recursive
  /// wildcard (`{name=**}`), and of `request.path` in a query over a collection group.
  case unknownPath

  /// Text that is valid Unicode.
  static func text(_ string: String) -> RuleValue { .string(RuleText(string)) }

  /// A stored value.
  package init(_ value: Value) {
    switch value {
    case .null: self = .null
    case .boolean(let value): self = .bool(value)
    case .integer(let value): self = .int(value)
    case .double(let value): self = .float(value)
    case .timestamp(let value): self = .timestamp(value)
    case .string(let value): self = .string(RuleText(value))
    case .bytes(let value): self = .bytes(value)
    case .reference(let name): self = .path(RulePath(name))
    case .geoPoint(let value): self = .latlng(value)
    case .array(let values): self = .list(.stored(values))
    case .map(let fields): self = .map(.stored(fields))
    case .vector(let numbers): self = .vector(numbers)
    // Only the cache of a client SDK has server timestamps that the server has not set yet.
    case .pendingServerTimestamp(let pending): self = .timestamp(pending.localWriteTime)
    }
  }

  /// The name of the value's type in messages.
  package var typeName: String {
    switch self {
    case .null: "null"
    case .bool: "bool"
    case .int: "int"
    case .float: "float"
    case .string: "string"
    case .bytes: "bytes"
    case .timestamp: "timestamp"
    case .duration: "duration"
    case .latlng: "latlng"
    case .path, .unknownPath: "path"
    case .list: "list"
    case .map: "map"
    case .set: "set"
    case .mapDiff: "map_diff"
    case .vector: "vector"
    case .constraint: "constraint"
    }
  }

  /// Whether `is` accepts the value as a type. A set is of no type, not even `set`, as in Google's emulator.
  func has(_ type: RuleType) -> Bool {
    switch (self, type) {
    case (.bool, .bool), (.bytes, .bytes), (.constraint, .constraint), (.duration, .duration),
      (.float, .float),
      (.int, .int), (.latlng, .latlng), (.list, .list), (.vector, .vector), (.map, .map), (.string, .string),
      (.timestamp, .timestamp), (.path, .path), (.unknownPath, .path), (.mapDiff, .mapDiff),
      (.int, .number), (.float, .number):
      true
    default: false
    }
  }
}
