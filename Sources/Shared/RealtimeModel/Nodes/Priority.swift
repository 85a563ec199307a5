// A location's priority: null, a number or a text. It orders children and belongs to the value: it goes when the value
// goes. Null is `nil` of `Priority?`.

/// The priority of a location that has one.
public enum Priority: Sendable, Hashable {
  /// A finite number.
  case number(Double)
  /// A text, compared by code units.
  case string(String)
  /// A priority the server computes when it applies the write. Occurs in writes only.
  case deferred(ServerValue)

  /// The priority that a leaf's value stands for.
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

  /// The leaf's value that stands for this priority.
  public var leafValue: LeafValue {
    switch self {
    case .number(let value): LeafValue(RealtimeNumber(value))
    case .string(let text): .string(text)
    case .deferred(let value): .deferred(value)
    }
  }

  /// Same type and same value.
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

  /// An estimate of the size that the priority adds in JSON, in bytes; the one that compound hashes use.
  var estimatedSize: Int { 24 + leafValue.estimatedSize }
}
