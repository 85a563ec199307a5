// Makes the FAILED_PRECONDITION error for a missing index. It has Firebase's text and a link to the Firebase
// console that creates the index.
//
// The link contains a google.firestore.admin.v1.Index in base64url without padding. Example: `genre`
// ascending and `pages` descending in `books` end in `…GgkKBWdlbnJlEAEaCQoFcGFnZXMQAhoMCghfX25hbWVfXxAC`. If
// the index is too long for the error message, the link leads to the list of indexes.

import Access
import FirestoreModel
import JSON
import OrderedStore

extension MissingIndex {
  /// Firebase's error. If the index's build failed, one more sentence reports this.
  /// - Parameter includesCause: whether that sentence includes the cause, which contains a document's name.
  func error(in database: DatabaseName, includesCause: Bool = false) -> FirestoreError {
    let console = "https://console.firebase.google.com/v1/r/project/\(database.project)/firestore/indexes"
    switch self {
    case .composite(let index, .building):
      return .failedPrecondition(
        "The query requires an index. That index is currently building and cannot be used yet. See its status here: "
          + "\(console)?create_composite=\(token(index, in: database, "indexes/_"))")
    case .composite(let index, let status):
      var message =
        "The query requires an index. You can create it here: "
        + "\(console)?create_composite=\(token(index, in: database, "indexes/_"))"
      // The sentence is after the link, since the end of a long message is cut off.
      if case .failed(let cause) = status {
        message += " The last build of it failed: " + (includesCause ? cause : "the server's log says why.")
      }
      return .failedPrecondition(message)
    case .single(let index):
      let field = index.parts.first?.field.description ?? ""
      let scope = index.scope == .collection ? "COLLECTION" : "COLLECTION_GROUP"
      let mode =
        switch index.parts.first?.mode {
        case .descending: "DESC"
        case .contains: "CONTAINS"
        default: "ASC"
        }
      return .failedPrecondition(
        "The query requires a \(scope)_\(mode) index for collection \(index.collectionID) and field \(field). You can "
          + "create it here: \(console)?create_exemption=\(token(index, in: database, "fields/\(field)"))")
    case .vector(let index, let field, let dimension):
      var fields = index.parts.map { part in
        part.mode == .contains
          ? "--field-config=array-config=contains,field-path=\(part.field)"
          : "--field-config=order=\(part.mode == .descending ? "DESCENDING" : "ASCENDING"),field-path=\(part.field)"
      }
      fields.append(
        "--field-config=vector-config='{\"dimension\":\"\(dimension)\",\"flat\": \"{}\"}',field-path=\(field)"
      )
      return .failedPrecondition(
        "Missing vector index configuration. Please create the required index with the following gcloud command: "
          + "gcloud firestore indexes composite create --project=\(database.project) "
          + "--collection-group=\(index.collectionID) "
          + "--query-scope=\(index.scope == .collection ? "COLLECTION" : "COLLECTION_GROUP") "
          + fields.joined(separator: " "))
    }
  }

  /// Maximum bytes of an index in a link: gRPC allows about 4 KiB for an error message.
  private static let tokenBytes = 2_400

  private func token(_ index: CompositeIndex, in database: DatabaseName, _ place: String) -> String {
    var bytes: [UInt8] = []
    append(1, "\(database)/collectionGroups/\(index.collectionID)/\(place)", to: &bytes)
    bytes += [0x10, index.scope == .collection ? 1 : 2]
    for part in index.parts {
      append(3, field(part.field.description, part.mode), to: &bytes)
    }
    // A composite index lists `__name__` as its last field. A single-field index does not.
    if case .composite = self {
      append(3, field("__name__", index.namesDescend ? .descending : .ascending), to: &bytes)
    }
    guard bytes.count <= Self.tokenBytes else { return "" }
    return Base64.encode(bytes, .urlSafe, padded: false)
  }

  private func field(_ path: String, _ mode: CompositeIndex.Mode) -> [UInt8] {
    var bytes: [UInt8] = []
    append(1, path, to: &bytes)
    switch mode {
    case .ascending: bytes += [0x10, 1]
    case .descending: bytes += [0x10, 2]
    case .contains: bytes += [0x18, 1]
    }
    return bytes
  }

  private func append(_ number: UInt8, _ text: String, to bytes: inout [UInt8]) {
    append(number, Array(text.utf8), to: &bytes)
  }

  /// Appends a length-delimited field.
  private func append(_ number: UInt8, _ content: [UInt8], to bytes: inout [UInt8]) {
    bytes.append(number << 3 | 2)
    var length = content.count
    while length >= 0x80 {
      bytes.append(UInt8(length & 0x7F) | 0x80)
      length >>= 7
    }
    bytes.append(UInt8(length))
    bytes += content
  }
}

extension FirestoreDatabase {
  /// In strict mode (`Options.requiresIndexes`), rejects a query that lacks a required index. If an index build failed at a
  /// document, only administrators receive the document's name, since rules may hide it from other callers.
  ///
  /// The check uses the current indexes even for a read at a past version. The plan of such a read uses only indexes
  /// that were complete at that version.
  func requireIndex(for query: PreparedQuery, as caller: Principal) throws(FirestoreError) {
    guard options.requiresIndexes else { return }
    let latest = Version(microseconds: .max)
    if let missing = Planner(query, indexes.current, at: latest).missingIndex {
      throw missing.error(in: name, includesCause: caller.isAdministrator)
    }
  }
}
