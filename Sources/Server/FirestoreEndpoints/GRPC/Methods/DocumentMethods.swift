// Document methods of the Firestore service: get, create, update and delete a document; list documents and collection
// IDs.
//
// Each method decodes the request, authenticates the caller, calls the engine and encodes the response.

import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import GRPCFraming
import NIOCore

extension FirestoreService {
  @Sendable func getDocument(
    _ request: Google_Firestore_V1_GetDocumentRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let name = try DocumentName(parsing: request.name)
    let caller = try caller(head)
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let token): .transaction([UInt8](token))
      case .readTime(let time): .readTime(Timestamp(time))
      case nil: .latest
      }
    let mask = request.hasMask ? try FieldMask(request.mask) : nil
    return ResponseEncoding.document(
      try await engine.getDocument(name, mask: mask, consistency: consistency, as: caller).document)
  }

  @Sendable func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let parent = try ParentName(parsing: request.parent)
    let caller = try caller(head)
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let token): .transaction([UInt8](token))
      case .readTime(let time): .readTime(Timestamp(time))
      case nil: .latest
      }
    let page = try await engine.listDocuments(
      ListDocumentsRequest(
        parent: parent, collectionID: request.collectionID, pageSize: Int(request.pageSize),
        pageToken: request.pageToken, orderBy: request.orderBy,
        mask: request.hasMask ? try FieldMask(request.mask) : nil, consistency: consistency,
        showMissing: request.showMissing),
      as: caller)
    return try ResponseEncoding.listDocuments(page)
  }

  @Sendable func createDocument(
    _ request: CreateDocumentRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let parent = try ParentName(parsing: request.parent)
    guard
      let collection = CollectionName(
        database: parent.database, path: parent.path.appending(request.collectionID))
    else { throw FirestoreError.invalidArgument("\"\(request.collectionID)\" is not a collection id.") }
    let caller = try caller(head)
    guard request.documentName.isEmpty else {
      throw FirestoreError.invalidArgument(
        "The document's name must not be set: the parent and the ids name it.")
    }
    let document = try await engine.createDocument(
      in: collection, id: request.documentID.isEmpty ? nil : request.documentID, fields: request.fields,
      mask: request.mask, as: caller)
    return ResponseEncoding.document(document)
  }

  @Sendable func updateDocument(
    _ request: UpdateDocumentRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let name = try DocumentName(parsing: request.documentName)
    let caller = try caller(head)
    let document = try await engine.updateDocument(
      name, fields: request.fields, updateMask: request.updateMask, mask: request.mask,
      precondition: request.precondition, as: caller)
    return ResponseEncoding.document(document)
  }

  @Sendable func deleteDocument(
    _ request: Google_Firestore_V1_DeleteDocumentRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let name = try DocumentName(parsing: request.name)
    let caller = try caller(head)
    try await engine.deleteDocument(
      name, precondition: request.hasCurrentDocument ? Precondition(request.currentDocument) : nil, as: caller
    )
    return ResponseEncoding.empty
  }

  @Sendable func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let parent = try ParentName(parsing: request.parent)
    let caller = try caller(head)
    let consistency: ReadConsistency =
      if case .readTime(let time)? = request.consistencySelector { .readTime(Timestamp(time)) } else {
        .latest
      }
    let page = try await engine.listCollectionIDs(
      ListCollectionIDsRequest(
        parent: parent, pageSize: Int(request.pageSize), pageToken: request.pageToken,
        consistency: consistency),
      as: caller)
    return try ResponseEncoding.listCollectionIDs(page)
  }
}
