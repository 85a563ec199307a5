// Fuzz target: the messages that a server sends to FirebaseFirestore on its two streams. For any messages, the changes
// of each snapshot transform the documents of the previous snapshot into its documents. The documents are in the
// query's order and within its limit.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import SwiftProtobuf

@testable import FirebaseFirestore

/// The input is a sequence of messages: a byte for the stream or its end, two bytes for the length, and the message.
func fuzzFirestoreMessages(_ input: UnsafeRawBufferPointer) throws {
  var client = FuzzedEngine()
  var rest = input[...]
  while rest.count >= 3 {
    let head = rest.prefix(3).map { Int($0) }
    let message = rest.dropFirst(3).prefix(head[1] << 8 | head[2])
    rest = rest.dropFirst(3 + message.count)
    try client.receive(head[0], Array(message))
  }
}

/// The sync engine with listeners and queued writes, without transport and clock. Connections succeed immediately.
private struct FuzzedEngine {
  private static let database = DatabaseName(project: "p")
  private static let root = ParentName(rootOf: database)

  private static let queries: [ClientQuery] = {
    func query(_ structured: StructuredQuery, isLimitToLast: Bool = false) -> ClientQuery {
      ClientQuery(ModelQuery(parent: FuzzedEngine.root, structured), isLimitToLast: isLimitToLast)
    }
    let ordered = StructuredQuery(
      from: [.init("c")], orderBy: [.init(.init(field: "v"), .ascending)], limit: 2)
    return [
      query(StructuredQuery(from: [.init("c")])), query(ordered), query(ordered, isLimitToLast: true),
      ClientQuery(document: FuzzedEngine.name("d1")),
    ]
  }()

  private var engine = SyncEngine(persistence: MemoryPersistence(isEager: false), seed: 1)
  /// The documents that each listener knows from the changes; none after an error.
  private var mirrors: [ListenerID: [DocumentName: CachedDocument]] = [:]

  private static func name(_ id: String) -> DocumentName { root.collection("c").document(id) }

  init() {
    engine.enableNetwork()
    for (number, query) in FuzzedEngine.queries.enumerated() {
      let id = ListenerID(number: number)
      mirrors[id] = [:]
      engine.listen(id, to: query, options: ListenerOptions(includeMetadataChanges: true))
    }
    let writes = [
      Write(.update(FuzzedEngine.name("d1"), fields: ["v": .integer(1)])),
      Write(.delete(FuzzedEngine.name("d2"))),
    ]
    for write in writes { engine.write([write], at: .epoch, completion: nil) }
  }

  /// Receives a message, or the end of a stream with the message's length as the status.
  mutating func receive(_ kind: Int, _ message: [UInt8]) throws {
    try performActions()
    do {
      switch kind % 4 {
      case 0: try receiveChange(message)
      case 1: try receiveAcknowledgement(message)
      // The status is at least 1, because the client treats an end without an error as a restart.
      case 2: close(.watch, FirestoreError(StatusCode(rawValue: max(1, Int32(message.count))), ""))
      default: close(.write, FirestoreError(StatusCode(rawValue: max(1, Int32(message.count))), ""))
      }
    } catch {
      // Like the client, the target ends the stream after an invalid message.
      close(kind % 4 == 0 ? .watch : .write, .internalError(""))
    }
    try performActions()
  }

  private mutating func receiveChange(_ message: [UInt8]) throws {
    let response = try Google_Firestore_V1_ListenResponse(serializedBytes: message)
    guard let change = try WatchChange(response, in: FuzzedEngine.database) else { return }
    engine.watchReceived(engine.watch.number, change)
  }

  private mutating func receiveAcknowledgement(_ message: [UInt8]) throws {
    let response = try Google_Firestore_V1_WriteResponse(serializedBytes: message)
    guard engine.writing.hasHandshake else { return engine.writeHandshakeDone(engine.writing.number) }
    engine.writeAcknowledged(
      engine.writing.number, results: try response.writeResults.map { try WriteResult($0) },
      commitTime: ModelTimestamp(response.commitTime))
  }

  private mutating func close(_ kind: StreamKind, _ error: FirestoreError) {
    switch kind {
    case .watch: engine.watchStreamClosed(engine.watch.number, error)
    case .write: engine.writeStreamClosed(engine.writing.number, error)
    }
  }

  private mutating func performActions() throws {
    while true {
      let actions = engine.takeActions()
      if actions.isEmpty { return }
      for action in actions { try perform(action) }
    }
  }

  private mutating func perform(_ action: EngineAction) throws {
    switch action {
    case .connect(.watch, let number): engine.watchStreamOpened(number)
    case .connect(.write, let number): engine.writeStreamOpened(number)
    case .startTimer(.backoff(let kind), seconds: _): engine.timerFired(.backoff(kind))
    case .snapshot(let id, let snapshot): try applySnapshot(snapshot, for: id)
    case .failure(let id, _): mirrors[id] = nil
    case .startTimer, .stopTimer, .inSync, .completed, .disconnect, .send, .renewToken, .warn: break
    }
  }

  private mutating func applySnapshot(_ snapshot: ViewSnapshot, for id: ListenerID) throws {
    guard var mirror = mirrors[id] else {
      throw PropertyFailure(description: "a listener received a snapshot after its error")
    }
    for change in snapshot.changes {
      let name = change.document.name
      let isKnown = mirror[name] != nil
      try require(isKnown == (change.kind != .added), "a change of \(name) does not fit the snapshot before")
      mirror[name] = change.kind == .removed ? nil : change.document
    }
    let documents = snapshot.documents.ordered
    try require(documents.count == mirror.count, "the changes do not lead to the documents")
    for document in documents {
      try require(mirror[document.name]?.fields == document.fields, "a document differs from its last change")
    }
    for (before, after) in zip(documents, documents.dropFirst()) {
      try require(snapshot.query.compare(before, after) == .ascending, "the documents are out of order")
    }
    if let limit = snapshot.query.limit { try require(documents.count <= limit, "the limit is exceeded") }
    mirrors[id] = mirror
  }
}
