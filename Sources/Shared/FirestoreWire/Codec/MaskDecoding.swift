// Decodes the paths of field masks (of reads and writes) and of projections (of queries).

import FirestoreModel

/// Collects the paths of a mask or projection, which may occur several times in a message.
///
/// Invariant: the number of collected paths is at most 1,024, or twice the number of distinct paths if that is more. The
/// bound matters because a small compressed request may repeat a path millions of times.
struct MaskPaths {
  /// The use of a mask, which decides about paths that no document can have.
  enum Use {
    /// Ignores paths with more names than any document has levels. They select nothing, and take up much more memory
    /// than their text. A mask of only such paths is an empty mask.
    case read
    /// Keeps all paths, since a write with an invalid path is rejected.
    case write
  }

  private(set) var paths: [FieldPath] = []
  private let use: Use
  private var deduplicationThreshold = MaskPaths.minimumThreshold

  private static let minimumThreshold = 1_024

  /// The maximum names of a path in a document.
  private static let maximumReadableNames = Limits.maximumValueDepth + 1

  init(for use: Use) { self.use = use }

  mutating func append(_ path: FieldPath) {
    if use == .read, path.count > MaskPaths.maximumReadableNames { return }
    paths.append(path)
    guard paths.count >= deduplicationThreshold else { return }
    paths = paths.sortedDistinct
    deduplicationThreshold = max(MaskPaths.minimumThreshold, 2 * paths.count)
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
