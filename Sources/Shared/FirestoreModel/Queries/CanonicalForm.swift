// The canonical form of a query: a string that identifies it, as a key for caches that outlive a process.
//
// Invariant: different queries have different canonical forms, since every string inside is quoted and escaped.

extension NormalizedQuery {
  /// The canonical form of the query: its parts in a fixed order. Parts that the query lacks are omitted.
  public var canonicalForm: String {
    var text = "\(parent)"
    if let selector {
      text += selector.allDescendants ? "|group:" : "|from:"
      text += CanonicalText.quoted(selector.collectionID)
    }
    if let filter { text += "|where:" + filter.canonicalText }
    text += "|order:"
    text += orders.map { "\($0.field)\($0.direction == .ascending ? " asc" : " desc")" }.joined(
      separator: ",")
    if let startAt { text += "|start:" + startAt.canonicalText }
    if let endAt { text += "|end:" + endAt.canonicalText }
    if offset > 0 { text += "|offset:\(offset)" }
    if let limit { text += "|limit:\(limit)" }
    if let findNearest {
      text += "|nearest:\(findNearest.field),\(findNearest.measure),\(findNearest.limit),"
      text += Value.vector(findNearest.vector).canonicalText
      if let field = findNearest.distanceResultField { text += ",result:\(field)" }
      if let threshold = findNearest.distanceThreshold { text += ",threshold:\(threshold)" }
    }
    if let select { text += "|select:" + select.paths.map(\.description).joined(separator: ",") }
    return text
  }
}

extension Filter {
  fileprivate var canonicalText: String {
    switch self {
    case .composite(let op, let parts):
      (op == .and ? "and(" : "or(") + parts.map(\.canonicalText).joined(separator: ",") + ")"
    case .field(let filter): "\(filter.field) \(filter.op.name) \(filter.value.canonicalText)"
    case .unary(let filter): "\(filter.field) \(filter.op)"
    }
  }
}

extension Cursor {
  fileprivate var canonicalText: String {
    (before ? "before(" : "after(") + values.map(\.canonicalText).joined(separator: ",") + ")"
  }
}

extension Value {
  /// A string that identifies the value. Two values have the same string exactly if they are strictly equal.
  public var canonicalText: String {
    switch self {
    case .null: "null"
    case .boolean(let value): value ? "true" : "false"
    case .integer(let value): "\(value)"
    case .double(let value): "double(\(value.isNaN ? "nan" : "\(value)"))"
    case .timestamp(let time): "time(\(time.seconds),\(time.nanoseconds))"
    case .string(let text): CanonicalText.quoted(text)
    case .bytes(let bytes): "bytes(" + CanonicalText.hexadecimal(bytes) + ")"
    case .reference(let name): "reference(" + CanonicalText.quoted(name.description) + ")"
    case .geoPoint(let point): "geo(\(point.latitude),\(point.longitude))"
    case .array(let elements): "[" + elements.map(\.canonicalText).joined(separator: ",") + "]"
    case .vector(let numbers):
      "vector(" + numbers.map { Value.double($0).canonicalText }.joined(separator: ",") + ")"
    case .map(let map):
      "{"
        + map.entries.map { CanonicalText.quoted($0.key) + ":" + $0.value.canonicalText }
        .joined(separator: ",") + "}"
    case .pendingServerTimestamp(let pending):
      "pending(\(pending.localWriteTime.seconds),\(pending.localWriteTime.nanoseconds),"
        + (pending.previousValue?.canonicalText ?? "") + ")"
    }
  }
}

/// Parts of canonical forms.
private enum CanonicalText {
  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      if scalar == "\"" || scalar == "\\" { result += "\\" }
      result.unicodeScalars.append(scalar)
    }
    return result + "\""
  }

  static func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
