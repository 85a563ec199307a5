// Which of a document's fields are returned: a read's mask, or a query's projection.
//
// Invariant: names are sorted and distinct at every level, and nothing stands inside a field that is kept whole. So masks
// that keep the same fields are equal, and a document costs the smaller of its own fields and the mask, times a logarithm:
// both come from clients, and one mask meets many documents.

/// The fields that are returned. `__name__` names none.
public struct FieldMask: Sendable {
  /// A name that paths of the mask have in common.
  struct Node: Hashable, Sendable {
    let name: String
    /// What is kept of the map; empty where the value is kept whole.
    let inside: [Node]

    static func == (a: Node, b: Node) -> Bool { a.name.hasSameUTF8(as: b.name) && a.inside == b.inside }

    func hash(into hasher: inout Hasher) {
      name.hashUTF8(into: &hasher)
      hasher.combine(inside)
    }
  }

  let nodes: [Node]

  /// Makes a mask of paths in any order; what repeats or lies inside another adds nothing.
  public init(_ paths: [FieldPath]) {
    nodes = FieldMask.nodes(paths.filter { !$0.isDocumentID }.inOrder[...], depth: 0)
  }

  /// The paths, in order.
  public var paths: [FieldPath] {
    var paths: [FieldPath] = []
    func add(_ nodes: [Node], below names: [String]) {
      for node in nodes {
        if node.inside.isEmpty { paths.append(FieldPath(unchecked: names + [node.name])) }
        add(node.inside, below: names + [node.name])
      }
    }
    add(nodes, below: [])
    return paths
  }

  /// The bytes that the mask takes up in memory, about.
  public var heldBytes: Int { FieldMask.heldBytes(nodes) }

  private static func heldBytes(_ nodes: [Node]) -> Int {
    guard nodes.capacity > 0 else { return 0 }
    return nodes.reduce(nodes.capacity * MemoryLayout<Node>.stride + overhead) { bytes, node in
      let length = node.name.utf8.count
      return bytes + (length > shortName ? length + overhead : 0) + heldBytes(node.inside)
    }
  }

  /// What an allocation takes beside its contents.
  private static let overhead = 32
  /// Bytes of a name that needs no allocation.
  private static let shortName = 15

  /// The nodes of sorted paths that are equal above `depth`.
  private static func nodes(_ paths: ArraySlice<FieldPath>, depth: Int) -> [Node] {
    var nodes: [Node] = []
    var rest = paths
    while let first = rest.first {
      let name = first.segments[depth]
      let group = rest.prefix { $0.segments[depth].hasSameUTF8(as: name) }
      rest = rest[group.endIndex...]
      // A path comes before those inside it.
      let isWhole = first.count == depth + 1
      nodes.append(Node(name: name, inside: isWhole ? [] : FieldMask.nodes(group, depth: depth + 1)))
    }
    return nodes
  }
}

extension FieldMask: Hashable, ExpressibleByArrayLiteral {
  /// Makes a mask of paths.
  public init(arrayLiteral paths: FieldPath...) { self.init(paths) }
}

extension MapValue {
  /// Only what a mask keeps, in the maps that enclose it; what is absent is left out.
  public func projected(to mask: FieldMask) -> MapValue { projected(to: mask.nodes) }

  private func projected(to nodes: [FieldMask.Node]) -> MapValue {
    var result: [Entry] = []
    var place = 0
    var position = 0
    while place < nodes.count, position < count {
      let node = nodes[place]
      let (next, isPresent) = find(node.name, from: position)
      position = next
      guard isPresent else {
        // On to the first name that the next field may have.
        if next < count { place = nodes.firstIndex(from: place + 1, notBefore: entries[next].key) }
        continue
      }
      let entry = entries[position]
      place += 1
      position += 1
      if node.inside.isEmpty {
        result.append(entry)
      } else if case .map(let map) = entry.value {
        let inner = map.projected(to: node.inside)
        if !inner.isEmpty { result.append(Entry(key: entry.key, value: .map(inner))) }
      }
    }
    return MapValue(sorted: result)
  }
}

extension [FieldMask.Node] {
  /// The first node at `start` or behind it whose name is not before another.
  fileprivate func firstIndex(from start: Int, notBefore name: String) -> Int {
    var low = start
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if Ordering.compare(utf8: self[middle].name, name) == .ascending {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }
}

extension [FieldPath] {
  /// The paths sorted; no more than a look where they are already.
  var inOrder: [FieldPath] { zip(self, dropFirst()).allSatisfy { $0 <= $1 } ? self : sorted() }

  /// The paths sorted, without repeats.
  package var distinctInOrder: [FieldPath] {
    if zip(self, dropFirst()).allSatisfy({ $0 < $1 }) { return self }
    var distinct: [FieldPath] = []
    for path in sorted() where path != distinct.last { distinct.append(path) }
    return distinct
  }
}
