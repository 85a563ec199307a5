// A commit's record in the log: in memory the documents before and after, on disk only which documents changed.
//
//     01 | { length (4, big endian) | path segments as in keys }…
//
// Invariant: the payload names every document that the commit changed, and no other. What they were and became is
// read from the store's history, so that the log stays small.

import FirestoreModel
import OrderedStore

/// One document's change by one commit.
struct DocumentChange: Sendable {
  var name: DocumentName
  /// Nil if the commit created it.
  var before: StoredDocument?
  /// Nil if the commit deleted it.
  var after: StoredDocument?
}

/// What followers of the log are handed.
final class CommitRecord: Sendable {
  let version: Version
  let changes: [DocumentChange]

  init(version: Version, changes: [DocumentChange]) {
    self.version = version
    self.changes = changes
  }

  /// The log record's bytes.
  static func encode(_ changes: [DocumentChange]) -> StoredValue {
    var bytes: StoredValue = [1]
    for change in changes {
      var path = IndexKeyEncoder()
      for segment in change.name.path.segments { path.append(segment: segment) }
      withUnsafeBytes(of: UInt32(path.bytes.count).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: path.bytes)
    }
    return bytes
  }

  /// The paths of the documents that a logged commit changed.
  /// - Throws: DATA_LOSS if the bytes are no record of this format.
  static func decode(_ payload: StoredValue) throws(FirestoreError) -> [ResourcePath] {
    let damaged = FirestoreError(.dataLoss, "A record of the commit log cannot be read.")
    guard payload.first == 1 else { throw damaged }
    var paths: [ResourcePath] = []
    var position = 1
    while position < payload.count {
      guard payload.count - position >= 4 else { throw damaged }
      let length = payload[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
      position += 4
      guard payload.count - position >= length else { throw damaged }
      var decoder = IndexKeyDecoder(Array(payload[position..<position + length]))
      var segments: [String] = []
      while !decoder.isAtEnd {
        guard let segment = decoder.segment() else { throw damaged }
        segments.append(segment)
      }
      paths.append(ResourcePath(segments))
      position += length
    }
    return paths
  }
}
