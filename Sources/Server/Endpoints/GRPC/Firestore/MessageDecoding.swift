// Requests from their wire bytes, without a copy: malformed protobuf is INVALID_ARGUMENT to the one who sent it.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import NIOCore
import SwiftProtobuf

/// A buffer's bytes in the form that the protobuf runtime reads from.
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

/// What a method is asked.
protocol GRPCRequest: Sendable {
  /// Reads a request.
  /// - Throws: INVALID_ARGUMENT for bytes that are not this message, or above `limit` bytes.
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

/// A request that is read without its generated message: see `FirestoreWire`. Every request that carries a value has
/// to be one, since generated messages take two spellings of a field's name for one.
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

/// The limits that hold for a request as a whole.
enum FirestoreRequestLimits {
  /// Refuses a request that is too large.
  static func check(_ request: ByteBuffer, _ limit: Int) throws(FirestoreError) {
    guard request.readableBytes <= limit else { throw tooLarge(request.readableBytes, limit) }
  }

  /// The error of a request that is too large, given its bytes where they are known, over gRPC, REST and WebChannel: one
  /// that clients do not try again, whatever the size.
  static func tooLarge(_ bytes: Int?, _ limit: Int) -> FirestoreError {
    let size = bytes.map { " (The request has \($0) bytes.)" } ?? ""
    return .invalidArgument("Request payload size exceeds the limit: \(limit) bytes.\(size)")
  }

  /// Messages of one stream that may wait while an earlier one is served; then the client is not read from.
  static let waitingMessages = 16
  /// Bytes of messages of one stream that may wait; then the client is not read from, either.
  static let waitingBytes = 1 << 20
}
