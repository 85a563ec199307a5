// Builds a subtree whose row keys exceed one commit of the store, so that one commit cannot remove it.

import Access
import RealtimeEngine
import RealtimeModel

enum HugeSubtree {
  /// A location with about 24 KB of path: 30 levels of the longest keys.
  static let path = Path(
    keys: ["huge"] + Array(repeating: ChildKey(String(repeating: "k", count: 768)), count: 29))

  /// An object of small leaves. The row key of each leaf contains the long path.
  static func leaves(_ count: Int) -> Node {
    .object((0..<count).map { (ChildKey("l\($0)"), Node.leaf(.int(Int64($0)))) })
  }

  /// Writes more than 64 MiB of row keys, in commits far below that size.
  static func fill(_ database: RealtimeDatabase) async throws {
    for group in 0..<10 {
      _ = try await database.set(path.child(ChildKey("g\(group)")), to: leaves(310), as: .administrator)
    }
  }
}
