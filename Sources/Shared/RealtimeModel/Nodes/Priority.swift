// The priority of a location: null, a number or a string. It orders the location among its siblings, and is removed
// together with the location's value. Code represents null as `nil` of `Priority?`.

/// A priority other than null.
public enum Priority: Sendable, Hashable {
  /// A finite number.
  case number(Double)
  /// A string, compared by code units.
  case string(String)
  /// A server value. It occurs only in writes.
  case deferred(ServerValue)

  /// Makes a priority from a leaf's value.
  ///
  /// - Throws: ``RealtimeError`` with status `failure` for a boolean.
  public init(_ value: LeafValue) throws(RealtimeError) {
    switch value {
    case .bool: throw .invalidData("priority must be null, a number or a string")
    case .int(let number): self = .number(Double(number))
    case .double(let number): self = .number(number == 0 ? 0 : number)
    case .string(let text): self = .string(text)
    case .deferred(let value): self = .deferred(value)
    }
  }

  /// The priority as a leaf's value.
  public var leafValue: LeafValue {
    switch self {
    case .number(let value): LeafValue(RealtimeNumber(value))
    case .string(let text): .string(text)
    case .deferred(let value): .deferred(value)
    }
  }

  /// Whether type and value are equal.
  public static func == (a: Priority, b: Priority) -> Bool {
    switch (a, b) {
    case (.number(let x), .number(let y)): x == y
    case (.string(let x), .string(let y)): TextOrder.equal(x, y)
    case (.deferred(let x), .deferred(let y)): x == y
    default: false
    }
  }

  /// Hashes consistently with `==`.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .number(let value): hasher.combine(value)
    case .string(let text): TextOrder.hash(text, into: &hasher)
    case .deferred(let value): hasher.combine(value)
    }
  }

  /// An estimate of the JSON bytes that the priority adds. Compound hashes depend on it.
  var estimatedSize: Int { 24 + leafValue.estimatedSize }
}
