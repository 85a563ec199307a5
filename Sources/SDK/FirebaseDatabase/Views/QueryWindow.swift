// Which children a query shows, as this client's views need it.

import RealtimeModel

extension QuerySpec {
  /// Whether a child lies within the bounds. An empty node never does.
  func contains(_ key: Key, _ node: Node) -> Bool {
    guard !node.isEmpty else { return false }
    if start == nil, end == nil { return true }
    let place = OrderingPlace(of: key, node, in: ordering)
    if let start {
      let lowest = startPlace(start)
      guard start.isInclusive ? lowest <= place : lowest < place else { return false }
    }
    if let end {
      let highest = endPlace(end)
      guard end.isInclusive ? place <= highest : place < highest else { return false }
    }
    return true
  }

  private func startPlace(_ bound: Bound) -> OrderingPlace {
    place(bound, key: bound.key ?? (bound.isInclusive ? .minimum : .maximum))
  }

  private func endPlace(_ bound: Bound) -> OrderingPlace {
    place(bound, key: bound.key ?? (bound.isInclusive ? .maximum : .minimum))
  }

  private func place(_ bound: Bound, key: Key) -> OrderingPlace {
    if ordering == .key, case .string(let text)? = bound.value {
      return OrderingPlace(value: .null, key: Key(bound: text))
    }
    return OrderingPlace(value: bound.value.map { .leaf($0) } ?? .null, key: key)
  }
}

extension Node {
  /// The children that a query shows, without the location's own priority.
  func window(_ query: QuerySpec) -> Node {
    guard case .children = content else { return .empty }
    if query.showsAll { return with(priority: nil) }
    guard let limit = query.limit else {
      var inside: [(Key, Node)] = []
      forEachChild { key, child in
        if query.contains(key, child) { inside.append((key, child)) }
        return true
      }
      return .object(inside)
    }
    let inside = sortedChildren(by: query.ordering).filter { query.contains($0.key, $0.node) }
    let shown =
      switch limit {
      case .first(let count): inside.prefix(count)
      case .last(let count): inside.suffix(count)
      }
    return .object(shown.map { ($0.key, $0.node) })
  }
}
