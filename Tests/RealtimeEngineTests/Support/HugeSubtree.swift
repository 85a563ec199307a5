// A subtree whose row keys alone are more than one commit of the store may hold, so that it cannot be removed at once.

import RealtimeEngine
import RealtimeModel

enum HugeSubtree {
  /// The location of about 24 KB of path: 30 levels of the longest keys.
  static let path = Path(
    keys: ["huge"] + Array(repeating: ChildKey(String(repeating: "k", count: 768)), count: 29))

  /// Small leaves, each of which takes its path again.
  static func leaves(_ count: Int) -> Node {
    .object((0..<count).map { (ChildKey("l\($0)"), Node.leaf(.int(Int64($0)))) })
  }

  /// Writes more than 64 MiB of row keys, in commits that are each far below that.
  static func fill(_ database: RealtimeDatabase) async throws {
    for group in 0..<10 {
      _ = try await database.set(path.child(ChildKey("g\(group)")), to: leaves(310), as: .administrator)
    }
  }
}
