// The log record of a commit. In memory it holds the changed documents before and after the commit. On disk
// it holds only their paths, in this format:
//
//     01 | { length (4, big endian) | path segments as in keys }…
//
// Invariant: the payload names exactly the documents that the commit changed. Readers of the log take the
// contents from the store's history, so the log stays small.

import FirestoreModel
import OrderedStore

/// The change of one document by one commit.
struct CommittedChange: Sendable {
  var name: DocumentName
  /// The document before; nil if the commit created it.
  var before: StoredDocument?
  /// The document after; nil if the commit deleted it.
  var after: StoredDocument?
}

/// The record that subscribers of the commit log receive, such as `WatchHub`.
final class CommitRecord: Sendable {
  let version: Version
  let changes: [CommittedChange]

  init(version: Version, changes: [CommittedChange]) {
    self.version = version
    self.changes = changes
  }

  /// The bytes of the log record.
  static func encode(_ changes: [CommittedChange]) -> StoredValue {
    var bytes: StoredValue = [1]
    for change in changes {
      var path = IndexKeyEncoder(prefix: [], room: 64)
      for segment in change.name.path.segments { path.append(segment: segment) }
      withUnsafeBytes(of: UInt32(path.bytes.count).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: path.bytes)
    }
    assert((try? decode(bytes)) == changes.map(\.name.path), "invariant: a log record decodes to its changes")
    return bytes
  }

  /// The paths of the changed documents in a log record.
  /// - Throws: DATA_LOSS if the bytes are not a record of this format.
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
