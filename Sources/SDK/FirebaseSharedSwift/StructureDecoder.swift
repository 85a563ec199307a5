// The structure decoder: converts one untyped value to a Swift value, for FirebaseDataDecoder.

package import Foundation

struct StructureDecoder: Swift.Decoder {
  let options: StructureDecodingOptions
  let codingPath: [any CodingKey]
  let value: Any

  var userInfo: [CodingUserInfoKey: Any] { options.userInfo }
  var isNull: Bool { value is NSNull }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    if isNull {
      throw DecodingError.valueNotFound(
        KeyedDecodingContainer<Key>.self,
        context("Cannot get keyed decoding container -- found null value instead."))
    }
    guard let map = value as? [String: Any] else { throw mismatch([String: Any].self) }
    return KeyedDecodingContainer(KeyedStructureDecoding<Key>(decoder: self, map: map))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    if isNull {
      throw DecodingError.valueNotFound(
        (any UnkeyedDecodingContainer).self,
        context("Cannot get unkeyed decoding container -- found null value instead."))
    }
    guard let list = value as? [Any] else { throw mismatch([Any].self) }
    return UnkeyedStructureDecoding(decoder: self, list: list)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer {
    SingleStructureDecoding(decoder: self)
  }

  func nested(_ key: any CodingKey, _ value: Any) -> StructureDecoder {
    StructureDecoder(options: options, codingPath: codingPath + [key], value: value)
  }

  // MARK: Errors

  func context(_ description: String) -> DecodingError.Context {
    DecodingError.Context(codingPath: codingPath, debugDescription: description)
  }

  func mismatch(_ type: Any.Type) -> DecodingError {
    .typeMismatch(type, context("Expected to decode \(type) but found \(kind) instead."))
  }

  func nullFound(_ type: Any.Type) -> DecodingError {
    .valueNotFound(type, context("Expected \(type) value but found null instead."))
  }

  private var kind: String {
    switch value {
    case is NSNull: "a null value"
    case is NSNumber: number == nil ? "a boolean" : "a number"
    case is String: "a string/data"
    case is [Any]: "an array"
    case is [String: Any]: "a dictionary"
    default: "\(type(of: value))"
    }
  }

  // MARK: Scalars

  /// The value as a number; nil for booleans, which are also NSNumbers.
  private var number: NSNumber? {
    guard let number = value as? NSNumber, !number.isBoolean else { return nil }
    return number
  }

  func bool() throws -> Bool {
    if isNull { throw nullFound(Bool.self) }
    guard let number = value as? NSNumber, number.isBoolean else { throw mismatch(Bool.self) }
    return number.boolValue
  }

  func string() throws -> String {
    if isNull { throw nullFound(String.self) }
    guard let string = value as? String else { throw mismatch(String.self) }
    return string
  }

  func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) throws -> Integer {
    if isNull { throw nullFound(type) }
    guard let number else { throw mismatch(type) }
    let exact: Integer? =
      number.holdsFloat
      ? Integer(exactly: number.doubleValue)
      : number.holdsUnsigned64 ? Integer(exactly: number.uint64Value) : Integer(exactly: number.int64Value)
    guard let exact else {
      throw DecodingError.dataCorrupted(context("Parsed JSON number <\(number)> does not fit in \(type)."))
    }
    return exact
  }

  func double() throws -> Double { try nonFiniteValue() ?? requiredNumber(Double.self).doubleValue }

  func float() throws -> Float {
    if let special = try nonFiniteValue() { return Float(special) }
    let double = try requiredNumber(Float.self).doubleValue
    guard abs(double) <= Double(Float.greatestFiniteMagnitude) || !double.isFinite else {
      throw DecodingError.dataCorrupted(context("Parsed JSON number \(double) does not fit in Float."))
    }
    return Float(double)
  }

  private func requiredNumber(_ type: Any.Type) throws -> NSNumber {
    if isNull { throw nullFound(type) }
    guard let number else { throw mismatch(type) }
    return number
  }

  private func nonFiniteValue() throws -> Double? {
    guard case .convertFromString(let positive, let negative, let nan) = options.float,
      let string = value as? String
    else { return nil }
    switch string {
    case positive: return .infinity
    case negative: return -.infinity
    case nan: return .nan
    default: return nil
    }
  }

  // MARK: Everything else

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    if let value = value as? T, options.passthrough.isPassthroughType(value) { return value }
    if type == Date.self { return try cast(date()) }
    if type == Data.self { return try cast(data()) }
    if type == URL.self { return try cast(url()) }
    if type == Decimal.self { return try cast(decimal()) }
    if let map = type as? any StringKeyedDecodable.Type { return try cast(map.entries(of: self)) }
    // The type of the value may be a subclass of `T`.
    return try type.init(from: self)
  }

  private func cast<T>(_ value: Any) throws -> T {
    guard let value = value as? T else { throw mismatch(T.self) }
    return value
  }

  private func date() throws -> Date {
    if isNull { throw nullFound(Date.self) }
    switch options.date {
    case .deferredToDate: return try Date(from: self)
    case .secondsSince1970: return Date(timeIntervalSince1970: try double())
    case .millisecondsSince1970: return Date(timeIntervalSince1970: try double() / 1000)
    case .iso8601:
      guard let date = InternetDate.date(from: try string()) else {
        throw DecodingError.dataCorrupted(context("Expected date string to be ISO8601-formatted."))
      }
      return date
    case .formatted(let formatter):
      guard let date = formatter.date(from: try string()) else {
        throw DecodingError.dataCorrupted(
          context("Date string does not match format expected by formatter."))
      }
      return date
    case .custom(let read): return try read(self)
    }
  }

  private func data() throws -> Data {
    if isNull { throw nullFound(Data.self) }
    switch options.data {
    case .deferredToData: return try Data(from: self)
    case .blob where value is Data: return try cast(value)
    case .blob, .base64:
      guard value is String else { throw mismatch(Data.self) }
      guard let data = Data(base64Encoded: try string()) else {
        throw DecodingError.dataCorrupted(context("Encountered Data is not valid Base64."))
      }
      return data
    case .custom(let read): return try read(self)
    }
  }

  private func url() throws -> URL {
    guard let url = URL(string: try string()) else {
      throw DecodingError.dataCorrupted(context("Invalid URL string."))
    }
    return url
  }

  private func decimal() throws -> Decimal {
    if let decimal = value as? Decimal { return decimal }
    return try requiredNumber(Decimal.self).decimalValue
  }
}

/// A dictionary whose keys are data and not coding keys, so that key strategies do not change them.
private protocol StringKeyedDecodable {
  static func entries(of decoder: StructureDecoder) throws -> Any
}

extension Dictionary: StringKeyedDecodable where Key == String, Value: Decodable {
  fileprivate static func entries(of decoder: StructureDecoder) throws -> Any {
    if decoder.isNull { throw decoder.nullFound(Self.self) }
    guard let map = decoder.value as? [String: Any] else { throw decoder.mismatch(Self.self) }
    var entries: [String: Value] = [:]
    for (key, value) in map {
      entries[key] = try decoder.nested(StructureKey(key), value).decode(Value.self)
    }
    return entries
  }
}

extension NSNumber {
  /// Whether this is one of the two booleans. It compares classes, because the numbers 1 and true are equal.
  package var isBoolean: Bool { type(of: self) == type(of: NSNumber(value: true)) }

  /// Whether the number was made from a floating-point value.
  package var holdsFloat: Bool {
    let code = String(cString: objCType)
    return code == "d" || code == "f" || self is NSDecimalNumber
  }

  /// Whether the number was made from an unsigned 64-bit integer.
  package var holdsUnsigned64: Bool { String(cString: objCType) == "Q" }
}
