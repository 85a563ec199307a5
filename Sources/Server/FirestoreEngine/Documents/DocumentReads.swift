// Point reads of documents in a view.

import FirestoreModel
import OrderedStore

extension ReadView {
  /// The document at a path; nil if there is none.
  func document(_ name: DocumentName) throws -> StoredDocument? {
    guard let row = try get(KeyLayout.document(name.path)) else { return nil }
    return try DocumentRow.decode(row.value, name)
  }
}

extension Version {
  /// The version as the API's time.
  var timestamp: Timestamp { Timestamp(microseconds: Int64(clamping: microseconds)) }

  /// The version at an API time, cut to microseconds; times before 1970 are version zero.
  init(_ time: Timestamp) { self.init(microseconds: UInt64(clamping: time.microseconds)) }
}
