// Masks and projections from wire bytes.

import FirestoreModel

/// The paths of a mask or projection as they come, possibly in several pieces.
///
/// Invariant: repeats take up no more than the distinct paths, or a thousand of them, since a few packed bytes may stand for
/// millions.
struct MaskPaths {
  private(set) var paths: [FieldPath] = []
  private var bound = MaskPaths.leastBound

  private static let leastBound = 1_024

  mutating func append(_ path: FieldPath) {
    paths.append(path)
    guard paths.count >= bound else { return }
    paths = paths.distinctInOrder
    bound = max(MaskPaths.leastBound, 2 * paths.count)
  }
}

extension ProtobufReader {
  /// Adds the paths of a `DocumentMask`.
  mutating func mask(into mask: inout MaskPaths?) throws(FirestoreError) {
    if mask == nil { mask = MaskPaths() }
    while let tag = try nextTag() {
      guard tag.field == 1 else {
        try skip(tag)
        continue
      }
      mask?.append(try FieldPath(parsing: try string(tag)))
    }
  }

  /// Adds the paths of a `Projection`.
  mutating func projection(into projection: inout MaskPaths?) throws(FirestoreError) {
    if projection == nil { projection = MaskPaths() }
    while let tag = try nextTag() {
      guard tag.field == 2 else {
        try skip(tag)
        continue
      }
      var nested = try message(tag)
      projection?.append(try FieldPath(parsing: try nested.fieldReference()))
    }
  }
}
