// A field's value: all types that the database stores, and pending server timestamps, which only clients have.
//
// `==` is strict equality, which decides whether a document changed: integer 1 ≠ double 1.0, 0.0 ≠ −0.0, NaN = NaN.
// Queries use the order and equality of `Value.compare`, where 1 = 1.0.

/// A value of a document's field.
public enum Value: Sendable {
  /// Null, which sorts before all other values.
  case null
  /// A boolean; false sorts before true.
  case boolean(Bool)
  /// A 64-bit integer; shares one order with doubles.
  case integer(Int64)
  /// A 64-bit float; NaN sorts before −∞.
  case double(Double)
  /// A point in time, stored in microseconds.
  case timestamp(Timestamp)
  /// Text of at most 1,048,487 bytes of UTF-8; sorts by its UTF-8 bytes.
  case string(String)
  /// At most 1,048,487 bytes; sort as unsigned bytes.
  case bytes([UInt8])
  /// The name of a document, which may be missing or belong to another database.
  indirect case reference(DocumentName)
  /// A geographic point.
  case geoPoint(GeoPoint)
  /// An array. No element is an array.
  case array([Value])
  /// A map; sorts after vectors.
  case map(MapValue)
  /// A vector of at most 2,048 doubles. On the wire it is a map with the key `__type__`.
  case vector([Double])
  /// A server timestamp that the server has not assigned yet. It occurs only in clients.
  indirect case pendingServerTimestamp(PendingServerTimestamp)
}

/// A server timestamp that a client has written and the server has not yet acknowledged.
public struct PendingServerTimestamp: Hashable, Sendable {
  /// The time of the write on the client. Pending timestamps sort by it.
  public var localWriteTime: Timestamp
  /// The field's value before the write, for readers that request it.
  public var previousValue: Value?

  /// Makes a pending server timestamp.
  public init(localWriteTime: Timestamp, previousValue: Value? = nil) {
    self.localWriteTime = localWriteTime
    self.previousValue = previousValue
  }
}

extension Value: Hashable {
  /// Strict equality: types differ even where numbers are equal, and text is compared by its bytes.
  public static func == (a: Value, b: Value) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.boolean(let a), .boolean(let b)): a == b
    case (.integer(let a), .integer(let b)): a == b
    case (.double(let a), .double(let b)): Numbers.identical(a, b)
    case (.timestamp(let a), .timestamp(let b)): a == b
    case (.string(let a), .string(let b)): a.hasSameUTF8(as: b)
    case (.bytes(let a), .bytes(let b)): a == b
    case (.reference(let a), .reference(let b)): a == b
    case (.geoPoint(let a), .geoPoint(let b)): a == b
    case (.array(let a), .array(let b)): a == b
    case (.map(let a), .map(let b)): a == b
    case (.vector(let a), .vector(let b)):
      a.count == b.count && zip(a, b).allSatisfy { Numbers.identical($0, $1) }
    case (.pendingServerTimestamp(let a), .pendingServerTimestamp(let b)): a == b
    default: false
    }
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    switch self {
    case .null: break
    case .boolean(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .double(let value): hasher.combine(Numbers.bits(value))
    case .timestamp(let value): hasher.combine(value)
    case .string(let value): value.hashUTF8(into: &hasher)
    case .bytes(let value): hasher.combine(value)
    case .reference(let value): hasher.combine(value)
    case .geoPoint(let value): hasher.combine(value)
    case .array(let value): hasher.combine(value)
    case .map(let value): hasher.combine(value)
    case .vector(let value): for number in value { hasher.combine(Numbers.bits(number)) }
    case .pendingServerTimestamp(let value): hasher.combine(value)
    }
  }
}

extension Value {
  /// The rank of a value's type in the order across types. Integers and doubles share one kind.
  public enum Kind: UInt8, Hashable, Comparable, Sendable {
    /// Null.
    case null = 1
    /// Boolean.
    case boolean
    /// Integer or double.
    case number
    /// Timestamp.
    case timestamp
    /// A client's pending server timestamp.
    case pendingServerTimestamp
    /// Text.
    case string
    /// Bytes.
    case bytes
    /// Reference to a document.
    case reference
    /// Geo point.
    case geoPoint
    /// Array.
    case array
    /// Vector.
    case vector
    /// Map.
    case map

    /// Orders kinds as the database orders types.
    public static func < (a: Kind, b: Kind) -> Bool { a.rawValue < b.rawValue }
  }

  /// The rank of the value's type in the order across types.
  public var kind: Kind {
    switch self {
    case .null: .null
    case .boolean: .boolean
    case .integer, .double: .number
    case .timestamp: .timestamp
    case .pendingServerTimestamp: .pendingServerTimestamp
    case .string: .string
    case .bytes: .bytes
    case .reference: .reference
    case .geoPoint: .geoPoint
    case .array: .array
    case .vector: .vector
    case .map: .map
    }
  }

  /// Whether this is the double NaN.
  public var isNaN: Bool {
    if case .double(let value) = self { return value.isNaN }
    return false
  }
}

// `Value` is not expressible by a nil literal: `map["a"] == nil` must mean that the field is missing, not that it is null.
extension Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  /// Text.
  public init(stringLiteral value: String) { self = .string(value) }
  /// An integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }
  /// A double.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// A boolean.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// An array.
  public init(arrayLiteral elements: Value...) { self = .array(elements) }
  /// A map. If a key repeats, the last value counts.
  public init(dictionaryLiteral elements: (String, Value)...) { self = .map(MapValue(elements)) }
}
