// Wire messages: converts between messages of the streams and the client's types.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import SwiftProtobuf

extension Google_Firestore_V1_ListenRequest {
  init(adding data: TargetData, database: DatabaseName) {
    self.init()
    self.database = database.description
    var target = Google_Firestore_V1_Target()
    target.targetID = data.id
    switch data.target {
    case .document(let name): target.documents.documents = [name.description]
    case .query(let query):
      target.query.parent = query.parent.description
      target.query.structuredQuery = Google_Firestore_V1_StructuredQuery(query.structured)
    }
    if !data.resumeToken.isEmpty {
      target.resumeToken = Data(data.resumeToken)
    } else if data.snapshotVersion > .epoch {
      target.readTime = Google_Protobuf_Timestamp(data.snapshotVersion)
    }
    if let count = data.expectedCount { target.expectedCount = .init(Int32(clamping: count)) }
    addTarget = target
    if let label = data.purpose.label { labels = ["goog-listen-tags": label] }
  }

  init(removing id: TargetID, database: DatabaseName) {
    self.init()
    self.database = database.description
    removeTarget = id
  }
}

extension WatchChange {
  /// Converts a message; nil if it is unknown.
  ///
  /// - Throws: an error if the message is malformed or names a document of another database.
  init?(_ response: Google_Firestore_V1_ListenResponse, in database: DatabaseName) throws(FirestoreError) {
    switch response.responseType {
    case .documentChange(let change):
      let document = try Document(change.document)
      try document.name.check(in: database)
      let cached = CachedDocument(
        found: document.name, fields: document.fields, version: document.updateTime,
        createTime: document.createTime)
      self = .document(
        document.name, cached, updated: change.targetIds, removed: change.removedTargetIds)
    case .documentDelete(let delete):
      let name = try DocumentName(parsing: delete.document)
      try name.check(in: database)
      let version = delete.hasReadTime ? ModelTimestamp(delete.readTime) : .epoch
      self = .document(
        name, CachedDocument(missing: name, version: version), updated: [],
        removed: delete.removedTargetIds)
    case .documentRemove(let remove):
      let name = try DocumentName(parsing: remove.document)
      try name.check(in: database)
      self = .document(name, nil, updated: [], removed: remove.removedTargetIds)
    case .filter(let filter):
      let names = filter.hasUnchangedNames ? BloomFilter(filter.unchangedNames) : nil
      self = .filter(filter.targetID, count: Int(filter.count), names: names)
    case .targetChange(let change):
      guard let update = TargetUpdate(change) else { return nil }
      self = .target(update)
    case nil: return nil
    }
  }
}

extension DocumentName {
  /// Checks that a document from the server belongs to the client's database.
  ///
  /// - Throws: INTERNAL for another database.
  func check(in database: DatabaseName) throws(FirestoreError) {
    guard self.database != database else { return }
    throw .internalError("The server sent '\(self)', which is not in the database '\(database)'.")
  }
}

extension WatchChange.TargetUpdate {
  fileprivate init?(_ change: Google_Firestore_V1_TargetChange) {
    switch change.targetChangeType {
    case .noChange: kind = .noChange
    case .add: kind = .add
    case .remove: kind = .remove
    case .current: kind = .current
    case .reset: kind = .reset
    case .UNRECOGNIZED: return nil
    }
    targets = change.targetIds
    resumeToken = [UInt8](change.resumeToken)
    cause =
      change.hasCause ? FirestoreError(change.cause) : nil
    // If a message names certain targets, its read time does not end a snapshot.
    snapshotVersion = change.targetIds.isEmpty && change.hasReadTime ? ModelTimestamp(change.readTime) : nil
  }
}

/// Makes the requests of a write stream. Each request except the first contains the stream token of the
/// server's last response.
struct WriteRequests {
  private var token = Data()

  /// The request that opens a stream.
  mutating func handshake(with database: DatabaseName) -> Google_Firestore_V1_WriteRequest {
    token = Data()
    return .with { $0.database = database.description }
  }

  /// The request for a batch. A request without writes ends the stream.
  func batch(_ writes: [Write]) -> Google_Firestore_V1_WriteRequest {
    .with {
      $0.streamToken = token
      $0.writes = writes.map { Google_Firestore_V1_Write($0) }
    }
  }

  /// Records the stream token of a response.
  mutating func recordResponse(_ response: Google_Firestore_V1_WriteResponse) { token = response.streamToken }
}
