// Masks and projections from wire bytes.

import FirestoreModel

/// The paths of a mask or projection as they come, possibly in several pieces.
///
/// Invariant: repeats take up no more than the distinct paths, or a thousand of them, since a few packed bytes may stand for
/// millions.
struct MaskPaths {
  /// What a mask is for.
  enum Use {
    /// Paths that no document can have are left out, for they select nothing and take up much more than their text.
    /// A mask of such paths alone is one without paths, not none.
    case read
    /// All paths count, since those that cannot be written are refused.
    case write
  }

  private(set) var paths: [FieldPath] = []
  private let use: Use
  private var bound = MaskPaths.leastBound

  private static let leastBound = 1_024

  /// Most names of a path that a document can have: the maps around a field are levels.
  private static let readableNames = Limits.greatestValueDepth + 1

  init(for use: Use) { self.use = use }

  mutating func append(_ path: FieldPath) {
    if use == .read, path.count > MaskPaths.readableNames { return }
    paths.append(path)
    guard paths.count >= bound else { return }
    paths = paths.distinctInOrder
    bound = max(MaskPaths.leastBound, 2 * paths.count)
  }
}

extension ProtobufReader {
  /// Adds the paths of a `DocumentMask`.
  mutating func mask(into mask: inout MaskPaths?, for use: MaskPaths.Use) throws(FirestoreError) {
    if mask == nil { mask = MaskPaths(for: use) }
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
    if projection == nil { projection = MaskPaths(for: .read) }
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
