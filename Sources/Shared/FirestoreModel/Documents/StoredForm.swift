// The form in which values are stored: times cut to microseconds.

extension MapValue {
  /// These fields as they are stored. Costs one pass and copies only where a time has nanoseconds.
  public var stored: MapValue {
    guard entries.contains(where: { $0.value.needsTruncation }) else { return self }
    var result = self
    for entry in entries where entry.value.needsTruncation { result[entry.key] = entry.value.stored }
    return result
  }
}

extension Value {
  /// This value as it is stored.
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
