// Which parts of the tree have index rows that are not complete yet: a row of its own, so that building goes on where it
// stood after the server was killed.
//
//   'i'     for each build 0x00 while it clears, 0x01 while it fills, its location, and the row that it goes on from

import OrderedStore
import RealtimeModel

/// A part of the tree whose index rows are built.
struct IndexBuild: Equatable {
  enum Phase: UInt8 {
    /// Rows are removed that say nothing any more.
    case clearing = 0
    /// The children of indexed locations get their rows.
    case filling = 1
  }

  let path: Path
  var phase = Phase.clearing
  /// The row to go on from: one of an index while it clears, of the tree while it fills.
  var cursor: [UInt8] = []
}

/// The builds that are to be done, the one under way first.
///
/// Invariant: a location that no build touches has exactly the rows that its values and the rules call for.
struct IndexBuilds: Equatable {
  static let row: [UInt8] = [UInt8(ascii: "i")]
  /// More are made one, of the whole tree.
  private static let most = 64

  private(set) var all: [IndexBuild] = []

  /// Whether the index rows of a location's own children may be incomplete. What is built below one of them leaves its rows
  /// there as they are.
  func concern(_ location: Path) -> Bool { all.contains { $0.path.contains(location) } }

  /// Has a location and what lies below it built anew.
  mutating func add(_ path: Path) {
    all.removeAll { path.contains($0.path) }
    if all.count < IndexBuilds.most {
      all.append(IndexBuild(path: path))
    } else {
      all = [IndexBuild(path: .root)]
    }
  }

  /// Notes how far the first build is; nil when it is done.
  mutating func update(_ first: IndexBuild?) {
    if let first { all[0] = first } else { all.removeFirst() }
  }

  init() {}

  init(in view: any ReadView) throws {
    guard let row = try view.get(IndexBuilds.row) else { return }
    all = try row.value.withUnsafeBytes { raw in
      var decoder = NodeDecoder(raw)
      return try (0..<(try decoder.count())).map { _ in
        guard let phase = IndexBuild.Phase(rawValue: try decoder.byte()) else { throw NodeDecoder.damaged }
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
    guard count <= StoreLimits.maximumKeyBytes else { throw NodeDecoder.damaged }
    return try (0..<count).map { _ in try byte() }
  }
}
