// Which of a document's fields are returned: a read's mask, or a query's projection.
//
// Invariant: paths are sorted and distinct, and none lies inside another. So masks that keep the same fields are equal,
// and a document costs the smaller of its own fields and the mask, times a logarithm: both come from clients, and one
// mask meets many documents.

/// The fields that are returned. `__name__` names none.
public struct FieldMask: Sendable {
  /// The paths, in order.
  public let paths: [FieldPath]

  /// Makes a mask of paths in any order; what repeats or lies inside another adds nothing.
  public init(_ paths: [FieldPath]) {
    var kept: [FieldPath] = []
    // A path comes right before those inside it.
    for path in paths.inOrder where !path.isDocumentID {
      if let last = kept.last, path.hasPrefix(last) { continue }
      kept.append(path)
    }
    self.paths = kept
  }

  /// The bytes that the mask takes up in memory, about.
  public var heldBytes: Int {
    guard paths.capacity > 0 else { return 0 }
    return paths.reduce(paths.capacity * MemoryLayout<FieldPath>.stride + FieldMask.overhead) { bytes, path in
      path.segments.reduce(
        bytes + path.segments.capacity * MemoryLayout<String>.stride + FieldMask.overhead
      ) { bytes, name in
        let length = name.utf8.count
        return bytes + (length > FieldMask.shortName ? length + FieldMask.overhead : 0)
      }
    }
  }

  /// What an allocation takes beside its contents.
  private static let overhead = 32
  /// Bytes of a name that needs no allocation.
  private static let shortName = 15
}

extension FieldMask: Hashable, ExpressibleByArrayLiteral {
  /// Makes a mask of paths.
  public init(arrayLiteral paths: FieldPath...) { self.init(paths) }
}

extension MapValue {
  /// Only what a mask keeps, in the maps that enclose it; what is absent is left out.
  public func projected(to mask: FieldMask) -> MapValue { projected(to: mask.paths[...], depth: 0) }

  /// What some of a mask's paths keep, all of them equal above `depth` and longer.
  private func projected(to paths: ArraySlice<FieldPath>, depth: Int) -> MapValue {
    var result: [Entry] = []
    var rest = paths
    var position = 0
    while let first = rest.first, position < count {
      let name = first.segments[depth]
      let (next, isPresent) = find(name, from: position)
      position = next
      guard isPresent else {
        guard next < count else { break }
        // On to the first name that the next field may have.
        let key = entries[next].key
        rest = rest.dropping(at: depth) { ComparisonOrder.compare(utf8: $0, key) == .ascending }
        continue
      }
      let entry = entries[position]
      position += 1
      if first.count == depth + 1 {
        result.append(entry)
        rest = rest.dropFirst()
        continue
      }
      let behind = rest.dropping(at: depth) { ComparisonOrder.compare(utf8: $0, name) != .descending }
      if case .map(let map) = entry.value {
        let inner = map.projected(to: rest[..<behind.startIndex], depth: depth + 1)
        if !inner.isEmpty { result.append(Entry(key: entry.key, value: .map(inner))) }
      }
      rest = behind
    }
    return MapValue(sorted: result)
  }
}

extension ArraySlice<FieldPath> {
  /// The paths without the first, and without the others in front whose name at `depth` a test holds for.
  fileprivate func dropping(at depth: Int, while test: (String) -> Bool) -> ArraySlice<FieldPath> {
    var low = startIndex + 1
    var high = endIndex
    while low < high {
      let middle = (low + high) / 2
      if test(self[middle].segments[depth]) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return self[low...]
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
