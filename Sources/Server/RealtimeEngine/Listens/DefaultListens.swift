// The default listens of one connection by path, to know which of them lie below another: what happens there the
// connection is told already.

import RealtimeModel

/// The paths of a connection's default listens.
struct DefaultListens {
  private var paths: Set<Path> = []
  /// How many of the paths lie below each location above one of them.
  private var below: [Path: Int] = [:]

  mutating func insert(_ path: Path) {
    guard paths.insert(path).inserted else { return }
    for ancestor in path.ancestors { below[ancestor, default: 0] += 1 }
  }

  mutating func remove(_ path: Path) {
    guard paths.remove(path) != nil else { return }
    for ancestor in path.ancestors {
      if let count = below[ancestor], count > 1 { below[ancestor] = count - 1 } else { below[ancestor] = nil }
    }
  }

  /// Whether a default listen lies above a path.
  func shadow(_ path: Path) -> Bool { !paths.isEmpty && path.ancestors.contains { paths.contains($0) } }

  /// Whether a default listen lies below a path.
  func hasBelow(_ path: Path) -> Bool { below[path] != nil }
}

extension Path {
  /// The locations above this one, from its parent to the root.
  var ancestors: [Path] {
    (0..<count).reversed().map { Path(keys: Array(keys.prefix($0))) }
  }
}
