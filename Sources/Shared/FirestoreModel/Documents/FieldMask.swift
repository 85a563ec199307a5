// A field mask selects the fields of a document that a read returns. It is the mask of a read or the projection of a
// query.
//
// Invariant: paths are sorted and distinct, and none lies inside another. Therefore masks that keep the same fields are
// equal. Projecting n fields to m paths takes O(min(n, m)) binary searches. This bound matters because clients choose
// both numbers, and one mask applies to many documents.

/// The fields that a read returns. `__name__` selects no field.
public struct FieldMask: Sendable {
  /// The paths, in order.
  public let paths: [FieldPath]

  /// Makes a mask of paths in any order. Repeated paths and paths inside other paths add nothing.
  public init(_ paths: [FieldPath]) {
    var kept: [FieldPath] = []
    // In sorted order, a path directly precedes the paths inside it.
    for path in paths.sortedIfNeeded where !path.isDocumentID {
      if let last = kept.last, path.hasPrefix(last) { continue }
      kept.append(path)
    }
    self.paths = kept
  }

  /// The approximate memory that the mask takes up, in bytes.
  public var heldBytes: Int {
    guard paths.capacity > 0 else { return 0 }
    return paths.reduce(paths.capacity * MemoryLayout<FieldPath>.stride + FieldMask.allocationOverhead) {
      bytes, path in
      path.segments.reduce(
        bytes + path.segments.capacity * MemoryLayout<String>.stride + FieldMask.allocationOverhead
      ) { bytes, name in
        let length = name.utf8.count
        return bytes + (length > FieldMask.maximumInlineBytes ? length + FieldMask.allocationOverhead : 0)
      }
    }
  }

  /// The estimated overhead of an allocation, in bytes.
  private static let allocationOverhead = 32
  /// The longest name, in bytes, that needs no allocation.
  private static let maximumInlineBytes = 15
}

extension FieldMask: Hashable, ExpressibleByArrayLiteral {
  /// Makes a mask of paths.
  public init(arrayLiteral paths: FieldPath...) { self.init(paths) }
}

extension MapValue {
  /// The fields that a mask selects, inside the maps that enclose them. Absent fields are omitted.
  public func projected(to mask: FieldMask) -> MapValue { projected(to: mask.paths[...], depth: 0) }

  /// The fields that these paths select. The paths agree in their first `depth` names, and all are longer.
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
        // Skip the names that sort before the next field.
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
      let remaining = rest.dropping(at: depth) { ComparisonOrder.compare(utf8: $0, name) != .descending }
      if case .map(let map) = entry.value {
        let inner = map.projected(to: rest[..<remaining.startIndex], depth: depth + 1)
        if !inner.isEmpty { result.append(Entry(key: entry.key, value: .map(inner))) }
      }
      rest = remaining
    }
    return MapValue(sorted: result)
  }
}

extension ArraySlice<FieldPath> {
  /// Drops the first path, and the paths directly after it as long as their name at `depth` passes the test.
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
  /// The paths sorted. O(n) if they are sorted already.
  var sortedIfNeeded: [FieldPath] { zip(self, dropFirst()).allSatisfy { $0 <= $1 } ? self : sorted() }

  /// The paths sorted, without repeats.
  package var sortedDistinct: [FieldPath] {
    if zip(self, dropFirst()).allSatisfy({ $0 < $1 }) { return self }
    var distinct: [FieldPath] = []
    for path in sorted() where path != distinct.last { distinct.append(path) }
    return distinct
  }
}
