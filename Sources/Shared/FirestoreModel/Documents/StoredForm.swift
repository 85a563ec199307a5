// Converts values to the form in which they are stored and compared: times are truncated to microseconds.

extension MapValue {
  /// These fields in stored form. Takes one pass, and copies only where a time has nanoseconds.
  public var stored: MapValue {
    guard entries.contains(where: { $0.value.needsTruncation }) else { return self }
    var result = self
    for entry in entries where entry.value.needsTruncation { result[entry.key] = entry.value.stored }
    return result
  }
}

extension Value {
  /// This value in stored form.
  public var stored: Value {
    switch self {
    case .timestamp(let time): .timestamp(time.truncatedToMicroseconds)
    case .array(let elements): needsTruncation ? .array(elements.map(\.stored)) : self
    case .map(let map): .map(map.stored)
    default: self
    }
  }

  fileprivate var needsTruncation: Bool {
    switch self {
    case .timestamp(let time): time.nanoseconds % 1000 != 0
    case .array(let elements): elements.contains { $0.needsTruncation }
    case .map(let map): map.entries.contains { $0.value.needsTruncation }
    default: false
    }
  }
}

extension StructuredQuery {
  /// This query with its operands and cursors in stored form. A query for a value that was just written then finds it.
  public var withStoredOperands: StructuredQuery {
    guard filter?.needsTruncation ?? false || startAt.needsTruncation || endAt.needsTruncation else {
      return self
    }
    var result = self
    result.filter = filter?.stored
    result.startAt = startAt.map { Cursor($0.values.map(\.stored), before: $0.before) }
    result.endAt = endAt.map { Cursor($0.values.map(\.stored), before: $0.before) }
    return result
  }
}

extension Cursor? {
  fileprivate var needsTruncation: Bool { self?.values.contains { $0.needsTruncation } ?? false }
}

extension Filter {
  fileprivate var needsTruncation: Bool {
    switch self {
    case .composite(_, let parts): parts.contains { $0.needsTruncation }
    case .field(let filter): filter.value.needsTruncation
    case .unary: false
    }
  }

  fileprivate var stored: Filter {
    switch self {
    case .composite(let op, let parts): .composite(op, parts.map(\.stored))
    case .field(let filter): .field(FieldFilter(filter.field, filter.op, filter.value.stored))
    case .unary: self
    }
  }
}
