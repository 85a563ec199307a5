// A cached document: its contents, their version, and the local changes that they include.
//
// Invariant: `version` is the server's version of the contents. It is the epoch if the server never sent the
// document, or if the contents result from local changes.

import FirestoreModel

/// The state of one document in the client's cache.
struct CachedDocument: Hashable, Sendable {
  /// The known state of the document.
  enum Contents: Hashable, Sendable {
    /// Nothing is known about the document.
    case none
    /// The document does not exist.
    case missing
    /// The document exists with these fields.
    case found(MapValue)
    /// The document exists at this version, but only the server knows its contents.
    case unknown
  }

  /// The local changes in the contents, which are newer than the document from watch.
  enum Changes: Hashable, Sendable {
    case none
    /// Writes that the server has not acknowledged.
    case local
    /// Writes that the server has acknowledged, but that watch has not delivered yet.
    case committed
  }

  let name: DocumentName
  var contents: Contents
  var version: ModelTimestamp
  var createTime: ModelTimestamp
  var readTime: ModelTimestamp
  var changes: Changes

  /// A document about which nothing is known.
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

  /// The value of a field or of `__name__`; nil if it is missing.
  func value(at path: ModelFieldPath) -> Value? {
    path.isDocumentID ? .reference(name) : fields.value(at: path)
  }

  /// Changes the contents to an existing document with these fields.
  mutating func setFound(_ fields: MapValue, version: ModelTimestamp, changes: Changes) {
    self.version = changes == .local ? .epoch : version
    contents = .found(fields)
    self.changes = changes
  }

  mutating func setMissing(version: ModelTimestamp, changes: Changes) {
    self.version = changes == .local ? .epoch : version
    contents = .missing
    self.changes = changes
  }

  mutating func setUnknown(version: ModelTimestamp) {
    self.version = version
    contents = .unknown
    changes = .committed
  }
}
