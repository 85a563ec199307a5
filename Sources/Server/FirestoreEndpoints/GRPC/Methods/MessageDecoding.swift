// Decodes request messages from protobuf bytes without copying them. Malformed protobuf is INVALID_ARGUMENT.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import NIOCore
import SwiftProtobuf

/// Adapts a `ByteBuffer` to the input type of the protobuf runtime.
private struct BufferBytes: SwiftProtobufContiguousBytes {
  private var buffer: ByteBuffer

  init(_ buffer: ByteBuffer) { self.buffer = buffer }

  init(repeating byte: UInt8, count: Int) { buffer = ByteBuffer(repeating: byte, count: count) }

  init<Bytes: Sequence>(_ bytes: Bytes) where Bytes.Element == UInt8 { buffer = ByteBuffer(bytes: bytes) }

  var count: Int { buffer.readableBytes }

  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try buffer.withUnsafeReadableBytes(body)
  }

  mutating func withUnsafeMutableBytes<Result>(
    _ body: (UnsafeMutableRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try buffer.withUnsafeMutableReadableBytes(body)
  }
}

/// The request message of a method.
protocol GRPCRequest: Sendable {
  /// Decodes a request.
  /// - Parameter limit: maximum size in bytes.
  /// - Throws: INVALID_ARGUMENT for malformed bytes, or for more than `limit` bytes.
  init(request: ByteBuffer, limit: Int) throws(FirestoreError)
}

extension Google_Firestore_V1_BatchGetDocumentsRequest: GRPCRequest {}
extension Google_Firestore_V1_BeginTransactionRequest: GRPCRequest {}
extension Google_Firestore_V1_DeleteDocumentRequest: GRPCRequest {}
extension Google_Firestore_V1_ExecutePipelineRequest: GRPCRequest {}
extension Google_Firestore_V1_GetDocumentRequest: GRPCRequest {}
extension Google_Firestore_V1_ListCollectionIdsRequest: GRPCRequest {}
extension Google_Firestore_V1_ListDocumentsRequest: GRPCRequest {}
extension Google_Firestore_V1_RollbackRequest: GRPCRequest {}

extension Message {
  init(request: ByteBuffer, limit: Int) throws(FirestoreError) {
    try FirestoreRequestLimits.check(request, limit)
    do {
      try self.init(serializedBytes: BufferBytes(request))
    } catch {
      throw .invalidArgument("The request is not a valid \(Self.protoMessageName) message.")
    }
  }
}

/// A request that `FirestoreWire` decodes directly, without a generated message.
///
/// Every request that contains document fields must conform: a generated message would treat two Unicode spellings of a
/// field name as equal.
protocol DirectRequest: GRPCRequest {
  init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError)
}

extension BatchWriteRequest: DirectRequest {}
extension CommitRequest: DirectRequest {}
extension CreateDocumentRequest: DirectRequest {}
extension ListenStreamRequest: DirectRequest {}
extension PartitionRequest: DirectRequest {}
extension RunQueryRequest: DirectRequest {}
extension RunAggregationQueryRequest: DirectRequest {}
extension UpdateDocumentRequest: DirectRequest {}
extension WriteStreamRequest: DirectRequest {}

extension DirectRequest {
  init(request: ByteBuffer, limit: Int) throws(FirestoreError) {
    try FirestoreRequestLimits.check(request, limit)
    let result = request.withUnsafeReadableBytes { bytes -> Result<Self, FirestoreError> in
      do throws(FirestoreError) {
        return .success(try Self(decoding: bytes))
      } catch {
        return .failure(error)
      }
    }
    self = try result.get()
  }
}

/// Size limits of request messages.
enum FirestoreRequestLimits {
  /// Checks the size of a request.
  /// - Throws: INVALID_ARGUMENT for more than `limit` bytes.
  static func check(_ request: ByteBuffer, _ limit: Int) throws(FirestoreError) {
    guard request.readableBytes <= limit else { throw tooLarge(request.readableBytes, limit) }
  }

  /// Returns the error for a request above the limit, over gRPC, REST and WebChannel. Its code is INVALID_ARGUMENT,
  /// which clients do not retry.
  /// - Parameter bytes: the size of the request; nil if it is unknown.
  static func tooLarge(_ bytes: Int?, _ limit: Int) -> FirestoreError {
    let size = bytes.map { " (The request has \($0) bytes.)" } ?? ""
    return .invalidArgument("Request payload size exceeds the limit: \(limit) bytes.\(size)")
  }

  /// Maximum number of messages of one stream that are queued before reading from the client pauses.
  static let maximumPendingMessages = 16
  /// Maximum bytes of one stream's queued messages before reading from the client pauses.
  static let maximumPendingBytes = 1 << 20
}
