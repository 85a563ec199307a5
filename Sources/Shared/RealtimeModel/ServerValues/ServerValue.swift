// Server values, which the server computes when it applies a write: `{".sv":"timestamp"}` and
// `{".sv":{"increment":n}}`.

/// A number in the database: a 64-bit integer if it fits, else a double.
public enum RealtimeNumber: Sendable, Hashable {
  /// An integer.
  case int(Int64)
  /// A double that does not equal a 64-bit integer.
  case double(Double)

  /// The canonical form of a double: integral values within 64 bits become integers, and -0 becomes 0.
  public init(_ value: Double) {
    if let exact = Int64(exactly: value) { self = .int(exact) } else { self = .double(value) }
  }

  /// The nearest double.
  public var doubleValue: Double {
    switch self {
    case .int(let value): Double(value)
    case .double(let value): value
    }
  }

  /// The sum: an integer for two integers unless it overflows, else a double.
  public func adding(_ other: RealtimeNumber) -> RealtimeNumber {
    if case .int(let a) = self, case .int(let b) = other {
      let (sum, overflow) = a.addingReportingOverflow(b)
      if !overflow { return .int(sum) }
    }
    return RealtimeNumber(doubleValue + other.doubleValue)
  }
}

/// A value that the server computes when it applies the write.
public enum ServerValue: Sendable, Hashable {
  /// The server's time in milliseconds since the Unix epoch. All timestamps of one write are equal.
  case timestamp
  /// The location's number plus this number. A location without a number counts as 0.
  case increment(RealtimeNumber)

  /// The resolved value at a location with the value `existing`.
  public func resolved(existing: Node, timestamp: Int64) -> LeafValue {
    switch self {
    case .timestamp: return .int(timestamp)
    case .increment(let delta):
      guard case .leaf(let value) = existing.content, let number = value.number else {
        return LeafValue(delta)
      }
      return LeafValue(number.adding(delta))
    }
  }
}
