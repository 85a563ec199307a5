// @ServerTimestamp: a nil property is written as the server's time.

public import FirebaseCore
public import Foundation

/// A type that can be converted from and to a timestamp.
public protocol ServerTimestampWrappable {
  /// Makes a value from a timestamp that was read.
  static func wrap(_ timestamp: Timestamp) throws -> Self
  /// Makes the timestamp that is written.
  static func unwrap(_ value: Self) throws -> Timestamp
}

extension Date: ServerTimestampWrappable {
  /// The timestamp as a date.
  public static func wrap(_ timestamp: Timestamp) throws -> Self { timestamp.dateValue() }
  /// The date as a timestamp.
  public static func unwrap(_ value: Self) throws -> Timestamp { Timestamp(date: value) }
}

extension Timestamp: ServerTimestampWrappable {
  /// The timestamp itself.
  public static func wrap(_ timestamp: Timestamp) throws -> Self {
    guard let same = timestamp as? Self else {
      throw FirestoreDecodingError.decodingIsNotSupported("Not a timestamp.")
    }
    return same
  }
  /// The timestamp itself.
  public static func unwrap(_ value: Timestamp) throws -> Timestamp { value }
}

/// Writes the server's time if the property is nil.
///
/// While such a write is pending, the property reads as nil. A missing field is an error (`keyNotFound`), as
/// for any property that is not optional.
@propertyWrapper
public struct ServerTimestamp<Value>: Codable where Value: ServerTimestampWrappable & Codable {
  private var value: Value?

  /// Makes the wrapper; nil means the server's time.
  public init(wrappedValue value: Value?) { self.value = value }

  /// The time; nil while the server has not set it.
  public var wrappedValue: Value? {
    get { value }
    set { value = newValue }
  }

  /// Reads a timestamp or null.
  public init(from decoder: any Swift.Decoder) throws {
    let container = try decoder.singleValueContainer()
    value = container.decodeNil() ? nil : try Value.wrap(container.decode(Timestamp.self))
  }

  /// Writes the timestamp, or the sentinel for the server's time.
  public func encode(to encoder: any Swift.Encoder) throws {
    var container = encoder.singleValueContainer()
    if let value {
      try container.encode(Value.unwrap(value))
    } else {
      try container.encode(FieldValue.serverTimestamp())
    }
  }
}

extension ServerTimestamp: Equatable where Value: Equatable {}
extension ServerTimestamp: Hashable where Value: Hashable {}
extension ServerTimestamp: Sendable where Value: Sendable {}
