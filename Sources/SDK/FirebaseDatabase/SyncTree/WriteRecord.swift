// A write record: one write of the app that the server has not acknowledged.

import RealtimeModel

/// One write that waits for its acknowledgement.
struct WriteRecord {
  enum Change {
    case overwrite(Node)
    case merge([(Path, Node)])
  }

  let id: Int
  let path: Path
  let change: Change
  /// Whether observers see the write before the server responds; false for transactions without local events.
  let isVisible: Bool
  /// The positions of the changes whose values depend on the server's values, because they contain
  /// increments.
  var estimatedPositions: Set<Int> = []

  /// The number of locations that the write replaces.
  var changeCount: Int {
    switch change {
    case .overwrite: 1
    case .merge(let changes): changes.count
    }
  }

  /// The location that one change of the write replaces, and its new value.
  func replacement(at position: Int) -> (path: Path, node: Node) {
    switch change {
    case .overwrite(let node): (path, node)
    case .merge(let changes): (path.appending(changes[position].0), changes[position].1)
    }
  }

  /// The values that the write replaces, with absolute paths.
  var replacements: [(path: Path, node: Node)] { (0..<changeCount).map(replacement) }
}
