// A cached document: its contents, their version, and the local changes in them.
//
// Invariant: `version` is the server's version of the contents. It is the epoch if the server never sent the document,
// or if the contents are local changes.

import FirestoreModel

/// The state of one document in the client.
struct CachedDocument: Hashable, Sendable {
  /// The known state of the document.
  enum Contents: Hashable, Sendable {
    /// Nothing at all.
    case none
    /// It does not exist.
    case missing
    /// It exists with these fields.
    case found(MapValue)
    /// It exists at this version with contents that only the server knows.
    case unknown
  }

  /// The local changes that the contents include beyond the documents from watch.
  enum Changes: Hashable, Sendable {
    case none
    /// Writes that the server has not acknowledged.
    case local
    /// Writes that the server acknowledged and watch has not delivered yet.
    case committed
  }

  let name: DocumentName
  var contents: Contents
  var version: ModelTimestamp
  var createTime: ModelTimestamp
  var readTime: ModelTimestamp
  var changes: Changes

  /// A document of which nothing is known.
  init(name: DocumentName) {
    self.name = name
    contents = .none
    version = .epoch
    createTime = .epoch
    readTime = .epoch
    changes = .none
  }

  init(found name: DocumentName, fields: MapValue, version: ModelTimestamp, createTime: ModelTimestamp) {
    self.init(name: name)
    contents = .found(fields)
    self.version = version
    self.createTime = createTime
  }

  init(missing name: DocumentName, version: ModelTimestamp) {
    self.init(name: name)
    contents = .missing
    self.version = version
  }

  var isKnown: Bool { contents != .none }
  var isMissing: Bool { contents == .missing }
  var isUnknown: Bool { contents == .unknown }
  var hasLocalChanges: Bool { changes == .local }
  var hasCommittedChanges: Bool { changes == .committed }
  var hasPendingWrites: Bool { changes != .none }

  var isFound: Bool {
    if case .found = contents { return true }
    return false
  }

  /// The fields; empty unless the document exists with known contents.
  var fields: MapValue {
    if case .found(let fields) = contents { return fields }
    return MapValue()
  }

  /// The value of a field, also `__name__`; nil where there is none.
  func value(at path: ModelFieldPath) -> Value? {
    path.isDocumentID ? .reference(name) : fields.value(at: path)
  }

  /// Becomes an existing document with these fields.
  mutating func become(found fields: MapValue, version: ModelTimestamp, changes: Changes) {
    self.version = changes == .local ? .epoch : version
    contents = .found(fields)
    self.changes = changes
  }

  mutating func becomeMissing(version: ModelTimestamp, changes: Changes) {
    self.version = changes == .local ? .epoch : version
    contents = .missing
    self.changes = changes
  }

  mutating func becomeUnknown(version: ModelTimestamp) {
    self.version = version
    contents = .unknown
    changes = .committed
  }
}
