// A JSON value, for messages of unknown structure. Strings compare by their bytes: `é` and `e` with a combining accent
// differ, as on the wire.

/// Any JSON value.
public enum JSONValue: Sendable, Equatable {
  /// `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// A number without fraction and exponent that fits 64 bits.
  case int(Int64)
  /// Any other number: finite, and never negative zero if it was read from a text.
  case double(Double)
  /// A string.
  case string(String)
  /// An array.
  case array([JSONValue])
  /// An object.
  case object(JSONObject)

  /// Reads one JSON text from bytes.
  ///
  /// - Throws: ``JSONError`` with the offset of the first byte that is not JSON.
  public init(json bytes: UnsafeRawBufferPointer, limits: JSONLimits = .standard) throws(JSONError) {
    var reader = try JSONReader(unsafeBytes: bytes, limits: limits)
    self = try reader.readValue()
    try reader.finish()
  }

  /// Reads one JSON text from an array of bytes.
  ///
  /// - Throws: ``JSONError`` with the offset of the first byte that is not JSON.
  public init(json bytes: [UInt8], limits: JSONLimits = .standard) throws(JSONError) {
    self = try Self.parse(bytes, limits)
  }

  /// Reads one JSON text from a string.
  ///
  /// - Throws: ``JSONError`` with the offset, in UTF-8, of the first byte that is not JSON.
  public init(json text: String, limits: JSONLimits = .standard) throws(JSONError) {
    self = try Self.parse(Array(text.utf8), limits)
  }

  private static func parse(_ bytes: [UInt8], _ limits: JSONLimits) throws(JSONError) -> JSONValue {
    let result = bytes.withUnsafeBytes { (raw) -> Result<JSONValue, JSONError> in
      do throws(JSONError) { return .success(try JSONValue(json: raw, limits: limits)) } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  /// Encodes the value.
  public func json(pretty: Bool = false) -> [UInt8] {
    var writer = JSONWriter(pretty: pretty)
    writer.write(self)
    return writer.bytes
  }

  /// Whether the value is `null`.
  public var isNull: Bool { self == .null }

  /// The string, if the value is a string.
  public var string: String? { if case .string(let value) = self { value } else { nil } }

  /// The boolean, if the value is a boolean.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// The integer, if the value is an integral number, such as `2.0`.
  public var int: Int64? {
    switch self {
    case .int(let value): value
    case .double(let value): Int64(exactly: value)
    default: nil
    }
  }

  /// The number as a double, if the value is a number.
  public var double: Double? {
    switch self {
    case .int(let value): Double(value)
    case .double(let value): value
    default: nil
    }
  }

  /// The elements, if the value is an array.
  public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

  /// The members, if the value is an object.
  public var object: JSONObject? { if case .object(let value) = self { value } else { nil } }

  /// The member with that name, if the value is an object that has it.
  public subscript(name: String) -> JSONValue? { object?[name] }

  /// Whether both values are equal JSON: strings by bytes, objects without order, and `1` equals `1.0`.
  public static func == (lhs: JSONValue, rhs: JSONValue) -> Bool {
    switch (lhs, rhs) {
    case (.null, .null): true
    case (.bool(let a), .bool(let b)): a == b
    case (.int(let a), .int(let b)): a == b
    case (.double(let a), .double(let b)): a == b
    case (.int(let a), .double(let b)), (.double(let b), .int(let a)): Int64(exactly: b) == a
    case (.string(let a), .string(let b)): a.hasSameBytes(as: b)
    case (.array(let a), .array(let b)): a == b
    case (.object(let a), .object(let b)): a == b
    default: false
    }
  }
}

extension String {
  /// Whether both strings have the same UTF-8 bytes. `==` also holds for canonically equivalent strings.
  @inline(__always)
  func hasSameBytes(as other: String) -> Bool {
    utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
  }
}
