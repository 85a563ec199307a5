// Values that the server computes when a write is applied: `{".sv":"timestamp"}` and `{".sv":{"increment":n}}`.

/// A number as the database keeps it: an exact 64-bit integer where it fits, else a double.
public enum RealtimeNumber: Sendable, Hashable {
  /// An integer.
  case int(Int64)
  /// A double that is no 64-bit integer.
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

  /// The sum: of integers an integer unless it overflows, else of doubles.
  public func adding(_ other: RealtimeNumber) -> RealtimeNumber {
    if case .int(let a) = self, case .int(let b) = other {
      let (sum, overflow) = a.addingReportingOverflow(b)
      if !overflow { return .int(sum) }
    }
    return RealtimeNumber(doubleValue + other.doubleValue)
  }
}

/// A value that the server computes when the write that carries it is applied.
public enum ServerValue: Sendable, Hashable {
  /// The server's clock, in milliseconds since the Unix epoch. The same instant everywhere in one write.
  case timestamp
  /// The location's number plus this one; this one where the location holds no number.
  case increment(RealtimeNumber)

  /// The value at a location that holds `existing`.
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
