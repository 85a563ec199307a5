// Records, in one row of the store, which parts of the tree have incomplete index rows. So builds continue
// after a crash.
//
//   'i'     for each build 0x00 while it clears or 0x01 while it fills, its location, and its cursor

import OrderedStore
import RealtimeModel

/// The build of the index rows of one part of the tree.
struct IndexBuild: Equatable {
  enum Phase: UInt8 {
    /// Removes obsolete rows.
    case clearing = 0
    /// Writes the rows for the children of indexed locations.
    case filling = 1
  }

  let path: Path
  var phase = Phase.clearing
  /// The key of the next row to process: an index row while clearing, a row of the tree while filling.
  var cursor: [UInt8] = []
}

/// The pending builds, the current one first.
///
/// Invariant: a location that no build affects has exactly the index rows that its values and the rules
/// require.
struct IndexBuilds: Equatable {
  static let row: [UInt8] = [UInt8(ascii: "i")]
  /// Maximum number of builds. Above it, all builds are replaced by one build of the complete tree.
  private static let maximumCount = 64

  private(set) var all: [IndexBuild] = []

  /// Whether a build may affect the index rows of a location's children, so that these may be incomplete.
  /// Builds at or below a child do not affect them.
  func mayAffect(_ location: Path) -> Bool { all.contains { $0.path.contains(location) } }

  /// Adds a build of a location and its descendants.
  mutating func add(_ path: Path) {
    all.removeAll { path.contains($0.path) }
    if all.count < IndexBuilds.maximumCount {
      all.append(IndexBuild(path: path))
    } else {
      all = [IndexBuild(path: .root)]
    }
  }

  /// Records the progress of the first build, or removes it if `first` is nil because the build is complete.
  mutating func update(_ first: IndexBuild?) {
    if let first { all[0] = first } else { all.removeFirst() }
  }

  init() {}

  init(in view: any ReadView) throws {
    guard let row = try view.get(IndexBuilds.row) else { return }
    all = try row.value.withUnsafeBytes { raw in
      var decoder = NodeDecoder(raw)
      return try (0..<(try decoder.count())).map { _ in
        guard let phase = IndexBuild.Phase(rawValue: try decoder.byte()) else { throw NodeDecoder.corrupted }
        let path = try decoder.path()
        return IndexBuild(path: path, phase: phase, cursor: try decoder.byteArray())
      }
    }
  }

  var bytes: [UInt8] {
    var encoder = NodeEncoder()
    encoder.append(all.count)
    for build in all {
      encoder.append(build.phase.rawValue)
      encoder.append(build.path)
      encoder.append(build.cursor)
    }
    return encoder.bytes
  }
}

extension NodeEncoder {
  mutating func append(_ bytes: [UInt8]) {
    append(bytes.count)
    for byte in bytes { append(byte) }
  }
}

extension NodeDecoder {
  mutating func byteArray() throws -> [UInt8] {
    let count = try count()
    guard count <= StoreLimits.maximumKeyBytes else { throw NodeDecoder.corrupted }
    return try (0..<count).map { _ in try byte() }
  }
}
