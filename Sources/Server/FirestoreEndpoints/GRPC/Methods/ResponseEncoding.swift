// Encodes the responses of unary and server-streaming methods as gRPC messages with their length prefixes.
//
// Field numbers are those of google/firestore/v1.

import FirestoreEngine
import FirestoreModel
import FirestoreWire
import GRPCFraming
import NIOCore

/// Encoders of the service's responses.
enum ResponseEncoding {
  /// Returns a length-prefixed message whose contents `body` writes.
  static func framed(capacity: Int = 128, _ body: (inout ByteBuffer) -> Void) throws -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.reserveCapacity(capacity + GRPCMessageParser.prefixLength)
    try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in body(&buffer) }
    return buffer
  }

  /// A length-prefixed google.protobuf.Empty.
  static let empty = {
    var buffer = ByteBuffer()
    buffer.writeGRPCMessage(bytes: [UInt8]())
    return buffer
  }()

  /// Encodes a google.firestore.v1.Document.
  static func document(_ document: StoredDocument) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.writeGRPCMessage(bytes: document.encoded)
    return buffer
  }

  static func listDocuments(_ page: ListDocumentsPage) throws -> ByteBuffer {
    try framed(capacity: 1024) { buffer in
      for entry in page.documents {
        switch entry {
        case .found(let document): buffer.writeField(1, document.encoded)
        case .missing(let name): buffer.writeMessage(1) { $0.writeField(1, name.description) }
        }
      }
      buffer.writeField(2, page.nextPageToken)
    }
  }

  static func listCollectionIDs(_ page: ListCollectionIDsPage) throws -> ByteBuffer {
    try framed { buffer in
      for id in page.collectionIDs { buffer.writeField(1, Array(id.utf8)) }
      buffer.writeField(2, page.nextPageToken)
    }
  }

  static func beginTransaction(_ token: [UInt8]) throws -> ByteBuffer {
    try framed { $0.writeField(1, token) }
  }

  static func commit(_ response: CommitResponse) throws -> ByteBuffer {
    try framed { buffer in
      buffer.writeResults(1, response.writeResults)
      if let time = response.commitTime { buffer.writeField(2, time) }
    }
  }

  /// Encodes a google.firestore.v1.BatchWriteResponse: a status and a result for each write. The result of a failed
  /// write is empty.
  static func batchWrite(_ outcomes: [Result<WriteResult, FirestoreError>]) throws -> ByteBuffer {
    try framed(capacity: 32 * outcomes.count) { buffer in
      let emptyResult = WriteResult(updateTime: nil)
      buffer.writeResults(1, outcomes.map { (try? $0.get()) ?? emptyResult })
      for outcome in outcomes {
        buffer.writeMessage(2) { buffer in
          guard case .failure(let error) = outcome else { return }
          buffer.writeField(1, Int(error.code.rawValue))
          buffer.writeField(2, error.message)
        }
      }
    }
  }

  /// Encodes a google.firestore.v1.PartitionQueryResponse: each split point is a cursor before a document.
  static func partitions(_ page: PartitionQueryPage) throws -> ByteBuffer {
    try framed { buffer in
      for point in page.points {
        buffer.writeMessage(1) { buffer in
          buffer.writeField(1, DocumentCodec.encode(.reference(point)))
          buffer.writeField(2, 1)
        }
      }
      buffer.writeField(2, page.nextPageToken)
    }
  }

  /// Encodes a google.firestore.v1.WriteResponse.
  static func write(streamID: String, token: Int, _ response: CommitResponse?) throws -> ByteBuffer {
    try framed { buffer in
      buffer.writeField(1, streamID)
      buffer.writeField(2, Array(String(token).utf8))
      if let response {
        buffer.writeResults(3, response.writeResults)
        if let time = response.commitTime { buffer.writeField(4, time) }
      }
    }
  }

  /// Encodes a page of BatchGetDocuments: one message for each document.
  ///
  /// The first message also contains the token of the transaction that the call began. Without documents the token is
  /// in a separate message.
  static func batchGet(_ page: BatchGetPage) throws -> ByteBuffer {
    var buffer = ByteBuffer()
    var transaction = page.transaction
    for item in page.items {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in
        switch item {
        case .found(let document): buffer.writeField(1, document.encoded)
        case .missing(let name): buffer.writeField(2, name.description)
        }
        if let token = transaction { buffer.writeField(3, token) }
        buffer.writeField(4, page.readTime)
      }
      transaction = nil
    }
    if let token = transaction {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in
        buffer.writeField(3, token)
        buffer.writeField(4, page.readTime)
      }
    }
    return buffer
  }

  /// Encodes a page of RunQuery.
  ///
  /// Separate messages contain the token of a transaction that the call began and the number of skipped results. The
  /// last document's message also contains the explanation, where official clients expect it. A query without results
  /// yields one message with the read time.
  static func query(_ page: QueryPage) throws -> ByteBuffer {
    var buffer = ByteBuffer()
    if let token = page.transaction {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in buffer.writeField(2, token) }
    }
    if page.skippedResults > 0 {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in
        buffer.writeField(3, page.readTime)
        buffer.writeField(4, page.skippedResults)
      }
    }
    if page.documents.isEmpty, page.skippedResults == 0, page.isLast, page.explanation == nil {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in buffer.writeField(3, page.readTime) }
    }
    for (index, document) in page.documents.enumerated() {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in
        buffer.writeField(1, document.encoded)
        buffer.writeField(3, page.readTime)
        if index == page.documents.count - 1, let explanation = page.explanation {
          buffer.writeExplanation(11, explanation)
        }
      }
    }
    if page.documents.isEmpty, let explanation = page.explanation {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in
        if explanation.statistics != nil { buffer.writeField(3, page.readTime) }
        buffer.writeExplanation(11, explanation)
      }
    }
    return buffer
  }

  /// Encodes the responses of RunAggregationQuery: one message with the result. A separate message before it contains
  /// the token of a transaction that the call began.
  static func aggregation(_ result: AggregationResult) throws -> ByteBuffer {
    var buffer = ByteBuffer()
    if let token = result.transaction {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in buffer.writeField(2, token) }
    }
    try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in
      if let explanation = result.explanation {
        buffer.writeExplanation(10, explanation)
        if explanation.statistics == nil { return }
      }
      buffer.writeMessage(1) { buffer in
        for entry in result.fields.entries {
          buffer.writeMessage(2) { buffer in
            buffer.writeField(1, entry.key)
            buffer.writeField(2, DocumentCodec.encode(entry.value))
          }
        }
      }
      buffer.writeField(3, result.readTime)
    }
    return buffer
  }
}

extension ByteBuffer {
  /// Writes a repeated google.firestore.v1.WriteResult field.
  mutating func writeResults(_ number: Int, _ results: [WriteResult]) {
    for result in results {
      writeMessage(number) { buffer in
        if let time = result.updateTime { buffer.writeField(1, time) }
        for value in result.transformResults { buffer.writeField(2, DocumentCodec.encode(value)) }
      }
    }
  }
}
