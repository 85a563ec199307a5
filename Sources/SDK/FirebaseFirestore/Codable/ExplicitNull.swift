// @ExplicitNull: a nil property is written as null instead of being omitted.

/// Writes null if the property is nil.
@propertyWrapper
public struct ExplicitNull<Value> {
  private var value: Value?

  /// Makes the wrapper.
  public init(wrappedValue value: Value?) { self.value = value }

  /// The value; nil means null.
  public var wrappedValue: Value? {
    get { value }
    set { value = newValue }
  }
}

extension ExplicitNull: Equatable where Value: Equatable {}
extension ExplicitNull: Hashable where Value: Hashable {}
extension ExplicitNull: Sendable where Value: Sendable {}

extension ExplicitNull: Encodable where Value: Encodable {
  /// Writes the value or null.
  public func encode(to encoder: any Swift.Encoder) throws {
    var container = encoder.singleValueContainer()
    if let value {
      try container.encode(value)
    } else {
      try container.encodeNil()
    }
  }
}

extension ExplicitNull: Decodable where Value: Decodable {
  /// Reads a value or null.
  public init(from decoder: any Swift.Decoder) throws {
    let container = try decoder.singleValueContainer()
    value = container.decodeNil() ? nil : try container.decode(Value.self)
  }
}
