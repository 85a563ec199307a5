// The value of a leaf. Booleans, numbers and strings never equal each other: `1` is not `true`.

/// The value of a leaf.
public enum LeafValue: Sendable, Hashable {
  /// A boolean.
  case bool(Bool)
  /// An integer number within 64 bits.
  case int(Int64)
  /// Any other number. ``Node/leaf(_:priority:)`` converts integral doubles within 64 bits to ``int(_:)``.
  case double(Double)
  /// A string, compared by code units.
  case string(String)
  /// A server value. It occurs only in writes, never in stored data.
  case deferred(ServerValue)

  /// A number in canonical form.
  public init(_ number: RealtimeNumber) {
    switch number {
    case .int(let value): self = .int(value)
    case .double(let value): self = .double(value)
    }
  }

  /// The number; nil for another type.
  public var number: RealtimeNumber? {
    switch self {
    case .int(let value): .int(value)
    case .double(let value): RealtimeNumber(value)
    default: nil
    }
  }

  /// The value in canonical form: see ``RealtimeNumber/init(_:)``.
  var canonical: LeafValue {
    switch self {
    case .double(let value): LeafValue(RealtimeNumber(value))
    case .string(var text):
      {
        text.makeContiguousUTF8(); return .string(text)
      }()
    default: self
    }
  }

  /// Whether type and value are equal; 1 equals 1.0.
  public static func == (a: LeafValue, b: LeafValue) -> Bool {
    switch (a, b) {
    case (.bool(let x), .bool(let y)): x == y
    case (.int(let x), .int(let y)): x == y
    case (.string(let x), .string(let y)): TextOrder.equal(x, y)
    case (.deferred(let x), .deferred(let y)): x == y
    case (.int, .double), (.double, .int), (.double, .double): a.number == b.number
    default: false
    }
  }

  /// Hashes consistently with `==`.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .bool(let value): hasher.combine(value)
    case .int, .double: hasher.combine(number)
    case .string(let text): TextOrder.hash(text, into: &hasher)
    case .deferred(let value): hasher.combine(value)
    }
  }

  /// An estimate of the value's size in JSON, in bytes. Compound hashes depend on it.
  var estimatedSize: Int {
    switch self {
    case .bool: 4
    case .int, .double: 8
    case .string(let text): text.utf8.count + 2
    case .deferred: 24
    }
  }
}

extension LeafValue: TotallyOrdered {
  /// The order: deferred values, false, true, numbers, strings.
  func order(against other: LeafValue) -> Int {
    switch (self, other) {
    case (.bool(let x), .bool(let y)): return x == y ? 0 : (y ? -1 : 1)
    case (.int(let x), .int(let y)): return x == y ? 0 : (x < y ? -1 : 1)
    case (.string(let x), .string(let y)): return TextOrder.compare(x, y)
    case (.int, .double), (.double, .int), (.double, .double):
      let (x, y) = (number?.doubleValue ?? 0, other.number?.doubleValue ?? 0)
      return x == y ? 0 : (x < y ? -1 : 1)
    default: return rank - other.rank
    }
  }

  private var rank: Int {
    switch self {
    case .deferred: 0
    case .bool: 1
    case .int, .double: 2
    case .string: 3
    }
  }
}
