// A listen client runs a Listen stream and keeps the same state as a client SDK: the documents of each
// target. The documents change only at consistent snapshots. The client throws if the server's messages are not in an
// order that the protocol permits.

import FirestoreProtobuf
import Foundation
import NIOCore
import SwiftProtobuf

struct ProtocolViolation: Error, CustomStringConvertible {
  var description: String
}

final class ListenClient {
  /// The state of one target (a listened query) as the client knows it.
  struct Target: Equatable {
    var documents: [String: Int64] = [:]
    var isAcknowledged = false
    var isCurrent = false
    var resumeToken = Data()
  }

  /// The documents of all targets at one global snapshot, a time at which the state of all targets is
  /// consistent.
  struct Snapshot: Equatable {
    var targets: [Int32: [String: Int64]]
    var readTime: Int64
  }

  let call: GRPCTestCall
  private(set) var targets: [Int32: Target] = [:]
  private(set) var removed: [Int32: Google_Rpc_Status] = [:]
  private(set) var filters: [Google_Firestore_V1_ExistenceFilter] = []
  /// The kinds of the received responses: `change`, `delete`, `remove`, `filter` or `reset`. Other kinds are not recorded.
  private(set) var receivedKinds: [String] = []
  /// Whether the client records every received response in ``recorded``.
  var isRecording = false
  /// The recorded responses as JSON.
  private(set) var recorded: [String] = []
  private var lastReadTime: Int64 = 0

  init(_ client: GRPCTestClient) async throws {
    call = try await client.open("Listen")
  }

  func add(
    _ id: Int32, _ query: Google_Firestore_V1_StructuredQuery, resuming token: Data? = nil,
    expected: Int32? = nil
  ) async throws {
    var target = Google_Firestore_V1_Target()
    target.targetID = id
    target.query.parent = FirestoreTestServer.documents
    target.query.structuredQuery = query
    try await add(target, resuming: token, expected: expected)
  }

  func add(_ id: Int32, documents: [String], resuming token: Data? = nil) async throws {
    var target = Google_Firestore_V1_Target()
    target.targetID = id
    target.documents.documents = documents.map { "\(FirestoreTestServer.documents)/\($0)" }
    try await add(target, resuming: token)
  }

  func add(_ target: Google_Firestore_V1_Target, resuming token: Data? = nil, expected: Int32? = nil)
    async throws
  {
    var request = Google_Firestore_V1_ListenRequest()
    request.database = FirestoreTestServer.database
    request.addTarget = target
    if let token { request.addTarget.resumeToken = token }
    if let expected { request.addTarget.expectedCount.value = expected }
    targets[target.targetID] = Target()
    try await call.send(request)
  }

  /// Sets the documents of a target that resumes a listen of another stream: the documents that the other stream has
  /// received.
  func setDocuments(_ documents: [String: Int64], for id: Int32) {
    targets[id]?.documents = documents
  }

  func remove(_ id: Int32) async throws {
    var request = Google_Firestore_V1_ListenRequest()
    request.database = FirestoreTestServer.database
    request.removeTarget = id
    try await call.send(request)
  }

  /// Reads messages up to the next global snapshot.
  func snapshot(within deadline: TimeAmount = .seconds(60)) async throws -> Snapshot {
    while true {
      if let snapshot = try await receiveResponse(within: deadline) { return snapshot }
    }
  }

  /// Reads snapshots until one satisfies a condition.
  func snapshot(where condition: (Snapshot) -> Bool) async throws -> Snapshot {
    while true {
      let snapshot = try await snapshot()
      if condition(snapshot) { return snapshot }
    }
  }

  /// Reads messages until a target is removed, and returns the cause; its code is 0 without an error.
  func removal(of id: Int32) async throws -> Google_Rpc_Status {
    while removed[id] == nil { _ = try await receiveResponse(within: .seconds(60)) }
    return removed.removeValue(forKey: id) ?? .init()
  }

  private func receiveResponse(within deadline: TimeAmount) async throws -> Snapshot? {
    let response: Google_Firestore_V1_ListenResponse = try await call.message(within: deadline)
    if isRecording { recorded.append(try response.jsonString()) }
    switch response.responseType {
    case .targetChange(let change): return try apply(change)
    case .documentChange(let change):
      receivedKinds.append("change")
      for id in change.targetIds {
        try requireAcknowledged(id)
        targets[id]?.documents[Self.relativePath(change.document.name)] =
          change.document.fields["n"]?.integerValue ?? 0
      }
      for id in change.removedTargetIds {
        targets[id]?.documents[Self.relativePath(change.document.name)] = nil
      }
    case .documentDelete(let delete):
      receivedKinds.append("delete")
      for id in delete.removedTargetIds { targets[id]?.documents[Self.relativePath(delete.document)] = nil }
    case .documentRemove(let remove):
      receivedKinds.append("remove")
      for id in remove.removedTargetIds { targets[id]?.documents[Self.relativePath(remove.document)] = nil }
    case .filter(let filter):
      receivedKinds.append("filter")
      filters.append(filter)
    case nil: throw ProtocolViolation(description: "an empty ListenResponse")
    }
    return nil
  }

  private func apply(_ change: Google_Firestore_V1_TargetChange) throws -> Snapshot? {
    switch change.targetChangeType {
    case .add:
      for id in change.targetIds {
        guard targets[id]?.isAcknowledged == false else {
          throw ProtocolViolation(description: "a second ADD of \(id)")
        }
        targets[id]?.isAcknowledged = true
      }
    case .remove:
      guard !change.targetIds.isEmpty else { throw ProtocolViolation(description: "a REMOVE of nothing") }
      for id in change.targetIds {
        targets[id] = nil
        removed[id] = change.cause
      }
    case .current:
      for id in change.targetIds {
        try requireAcknowledged(id)
        targets[id]?.isCurrent = true
        guard !change.resumeToken.isEmpty else {
          throw ProtocolViolation(description: "CURRENT without a token")
        }
        targets[id]?.resumeToken = change.resumeToken
      }
    case .reset:
      receivedKinds.append("reset")
      for id in change.targetIds {
        try requireAcknowledged(id)
        targets[id]?.documents = [:]
        targets[id]?.isCurrent = false
      }
    case .noChange:
      guard change.targetIds.isEmpty, change.hasReadTime else { return nil }
      return try globalSnapshot(change)
    case .UNRECOGNIZED(let kind): throw ProtocolViolation(description: "a target change of kind \(kind)")
    }
    return nil
  }

  private func globalSnapshot(_ change: Google_Firestore_V1_TargetChange) throws -> Snapshot {
    for (id, target) in targets where target.isAcknowledged && !target.isCurrent {
      throw ProtocolViolation(description: "a global snapshot while target \(id) is loading")
    }
    let time = change.readTime.seconds * 1_000_000 + Int64(change.readTime.nanos / 1000)
    guard time >= lastReadTime else { throw ProtocolViolation(description: "a snapshot's time went back") }
    guard !change.resumeToken.isEmpty else {
      throw ProtocolViolation(description: "a snapshot without a token")
    }
    lastReadTime = time
    for id in targets.keys where targets[id]?.isCurrent == true {
      targets[id]?.resumeToken = change.resumeToken
    }
    return Snapshot(targets: targets.mapValues(\.documents), readTime: time)
  }

  private func requireAcknowledged(_ id: Int32) throws {
    guard targets[id]?.isAcknowledged == true else {
      throw ProtocolViolation(description: "a message for target \(id) before its ADD")
    }
  }

  private static func relativePath(_ name: String) -> String {
    String(name.dropFirst(FirestoreTestServer.documents.count + 1))
  }
}
