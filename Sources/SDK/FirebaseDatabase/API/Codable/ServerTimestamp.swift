// A property wrapper for a date that the server sets.

public import Foundation

/// A date in a Codable value that the server fills in when it is nil.
///
/// Nil is written as the placeholder for the server's time, and a date as milliseconds since 1970.
/// Milliseconds are read as a date.
@propertyWrapper
public struct ServerTimestamp: Codable, Equatable, Hashable, Sendable {
  private var value: Date?

  /// Wraps a date. Nil means the server's time.
  public init(wrappedValue value: Date?) {
    self.value = value
  }

  /// The date; nil until the server has set it.
  public var wrappedValue: Date? {
    get { value }
    set { value = newValue }
  }

  /// Reads milliseconds since 1970, or null.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      value = nil
    } else {
      value = Date(timeIntervalSince1970: try container.decode(Double.self) / 1_000)
    }
  }

  /// Writes milliseconds since 1970, or the placeholder for the server's time.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let value {
      try container.encode(Int64((value.timeIntervalSince1970 * 1_000).rounded()))
    } else {
      try container.encode([".sv": "timestamp"])
    }
  }
}
