// The properties of `query` in rules of the Realtime Database.

import RealtimeModel

extension QuerySpec {
  /// The value of a property of `query`.
  func value(of field: RealtimeQueryField) -> RealtimeValue {
    switch field {
    case .orderByKey: .bool(ordering == .key || isUnordered)
    case .orderByValue: .bool(ordering == .value)
    case .orderByPriority: .bool(ordering == .priority && !isUnordered)
    case .orderByChild:
      if case .child(let path) = ordering { .string(path.description) } else { .null }
    case .equalTo: RealtimeValue(equalBound?.value)
    case .startAt: RealtimeValue(equalBound == nil ? start?.value : nil)
    case .endAt: RealtimeValue(equalBound == nil ? end?.value : nil)
    case .limitToFirst:
      if case .first(let count)? = limit { .number(Double(count)) } else { .null }
    case .limitToLast:
      if case .last(let count)? = limit { .number(Double(count)) } else { .null }
    }
  }

  /// Whether the request names no order. Rules treat such a request as ordered by key.
  ///
  /// On the WebSocket, clients omit the order by priority. A request by priority with only a limit therefore looks like
  /// a request without an order. The bounds of a request without an order are priorities, so they must not satisfy a
  /// rule about bounds of keys.
  private var isUnordered: Bool {
    ordering == .priority && !namesPriority && start == nil && end == nil
  }

  /// The bound of a query for one value, which the protocol represents as two equal inclusive bounds.
  private var equalBound: Bound? {
    guard let start, let end, start.isInclusive, end.isInclusive, start.value == end.value,
      start.key == end.key
    else { return nil }
    return start
  }
}
