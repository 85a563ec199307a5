// The Firestore service: serves google.firestore.v1.Firestore with the engine.
//
// Each method decodes the request, authenticates the caller, calls the engine and encodes the response. A call of a
// method that is not in the table fails with UNIMPLEMENTED.

import Access
import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import GRPCFraming
import NIOCore
import NIOHPACK

/// The methods of google.firestore.v1.Firestore.
struct FirestoreService: Sendable {
  static let name = "google.firestore.v1.Firestore"

  let engine: FirestoreEngine
  let authentication: FirestoreAuthentication
  /// Maximum size of a request message in bytes.
  let requestBytes: Int

  init(engine: FirestoreEngine, authentication: FirestoreAuthentication) {
    self.engine = engine
    self.authentication = authentication
    requestBytes = engine.limits.maximumRequestBytes
  }

  /// The method table of the service.
  var methods: GRPCMethods {
    GRPCMethods(
      service: Self.name,
      [
        "GetDocument": .reading(page: 0, unaryBody(getDocument)),
        "ListDocuments": .reading(page: EngineLimits.maximumListPageBytes, unaryBody(listDocuments)),
        "CreateDocument": .updating(unaryBody(createDocument)),
        "UpdateDocument": .updating(unaryBody(updateDocument)),
        "DeleteDocument": unary(deleteDocument),
        "BeginTransaction": unary(beginTransaction),
        "Commit": .unaryCallback(commit),
        "Rollback": unary(rollback),
        "BatchWrite": unary(batchWrite),
        "ListCollectionIds": .reading(page: EngineLimits.maximumListPageBytes, unaryBody(listCollectionIDs)),
        "PartitionQuery": .reading(page: EngineLimits.maximumPartitionSampleBytes, unaryBody(partitionQuery)),
        "BatchGetDocuments": streaming(batchGetDocuments),
        "RunQuery": streaming(runQuery),
        "RunAggregationQuery": streaming(runAggregationQuery),
        "ExecutePipeline": streaming(executePipeline),
        "Write": .duplex { head, responder in WriteCall(self, head, responder) },
        "Listen": .duplex { head, responder in ListenCall(self, head, responder) },
      ],
      oversized: { [requestBytes] bytes in GRPCStatus(FirestoreRequestLimits.tooLarge(bytes, requestBytes)) },
      admit: { head throws(GRPCStatus) in
        do throws(FirestoreError) {
          try authentication.admit(authorization: head.headers["authorization"])
        } catch {
          throw GRPCStatus(error)
        }
      })
  }

  /// Returns the caller that the call's credentials identify.
  /// - Throws: UNAUTHENTICATED or INVALID_ARGUMENT for credentials that are not accepted.
  func caller(_ head: GRPCRequestHead) throws(FirestoreError) -> Principal {
    try authentication.caller(authorization: head.headers["authorization"])
  }

  private func unary<Request: GRPCRequest>(
    _ body: @escaping @Sendable (Request, GRPCRequestHead) async throws -> ByteBuffer
  ) -> GRPCMethods.Method {
    .unary(unaryBody(body))
  }

  private func unaryBody<Request: GRPCRequest>(
    _ body: @escaping @Sendable (Request, GRPCRequestHead) async throws -> ByteBuffer
  ) -> @Sendable (GRPCRequestHead, ByteBuffer) async throws -> ByteBuffer {
    { [requestBytes] head, message in
      do {
        return try await body(try Request(request: message, limit: requestBytes), head)
      } catch let error as FirestoreError {
        throw GRPCStatus(error)
      }
    }
  }

  private func streaming<Request: GRPCRequest>(
    _ body: @escaping @Sendable (Request, GRPCRequestHead, any CallResponder) async throws -> Void
  ) -> GRPCMethods.Method {
    .serverStreaming { [requestBytes] head, message, responder in
      do {
        try await body(try Request(request: message, limit: requestBytes), head, responder)
      } catch let error as FirestoreError {
        throw GRPCStatus(error)
      }
    }
  }
}

extension GRPCStatus {
  /// Creates the status for an error of the engine.
  ///
  /// The message is never empty: clients treat an empty message as a malformed response.
  init(_ error: FirestoreError) {
    self.init(
      Code(rawValue: UInt32(clamping: error.code.rawValue)),
      error.message.isEmpty ? "The call failed with \(error.code.name)." : error.message)
    details = Details(
      fieldViolations: error.fieldViolations.map { .init(field: $0.field, description: $0.description) },
      reason: error.reason, domain: error.reason.isEmpty ? "" : "firestore.googleapis.com")
  }
}
