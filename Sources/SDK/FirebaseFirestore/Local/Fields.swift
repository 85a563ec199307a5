// Extends the fields of the shared model with functions that only the client needs: optional values, leaf
// paths and sizes.

import FirestoreModel

extension MapValue {
  /// Sets a value at a path. With nil it removes the field, and creates no maps.
  mutating func put(_ value: Value?, at path: ModelFieldPath) {
    if let value { set(value, at: path) } else { remove(at: path) }
  }

  /// The paths of all leaves; an empty map counts as a leaf.
  var leafPaths: [ModelFieldPath] {
    var paths: [ModelFieldPath] = []
    collectLeaves(under: nil, into: &paths)
    return paths
  }

  private func collectLeaves(under prefix: ModelFieldPath?, into paths: inout [ModelFieldPath]) {
    for entry in entries {
      let path = prefix?.appending(entry.key) ?? ModelFieldPath(field: entry.key)
      if case .map(let map) = entry.value, !map.isEmpty {
        map.collectLeaves(under: path, into: &paths)
      } else {
        paths.append(path)
      }
    }
  }

  /// The approximate size in memory in bytes.
  var approximateSize: Int { entries.reduce(0) { $0 + $1.key.utf8.count + $1.value.approximateSize } }
}

extension Value {
  /// The approximate size in memory in bytes.
  var approximateSize: Int {
    switch self {
    case .string(let text): 16 + text.utf8.count
    case .bytes(let bytes): 16 + bytes.count
    case .array(let elements): elements.reduce(16) { $0 + $1.approximateSize }
    case .map(let map): 16 + map.approximateSize
    case .vector(let numbers): 16 + 8 * numbers.count
    default: 16
    }
  }
}
