// What the client needs of fields beyond the shared model: optional values and leaf paths.

import FirestoreModel

extension MapValue {
  /// Sets a value at a path; nil removes the field and makes no map for it.
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
}
