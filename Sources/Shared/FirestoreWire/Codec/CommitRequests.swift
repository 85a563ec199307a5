// Decodes requests with writes, without the generated messages. These requests are the most frequent, and the generated
// messages treat some different field names as equal (see WriteDecoding).

public import FirestoreModel

/// A `CommitRequest`.
public struct CommitRequest: Hashable, Sendable {
  /// The database's name as it was sent.
  public var database = ""
  /// The writes in order.
  public var writes: [Write] = []
  /// The transaction's token; nil outside of transactions.
  public var transaction: [UInt8]?

  /// Decodes a request, without keeping a reference to its bytes.
  ///
  /// - Throws: INVALID_ARGUMENT if the request is malformed.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError) {
    var reader = ProtobufReader(bytes)
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1:
        database = try reader.string(tag)
      case 2:
        var nested = try reader.message(tag)
        writes.append(try nested.write())
      case 3:
        let token = try reader.bytes(tag)
        transaction = token.isEmpty ? nil : token
      default: try reader.skip(tag)
      }
    }
  }
}

extension CommitRequest {
  /// The database and the transaction of a malformed request. Only the fields before the malformed part are read. The
  /// result is nil if they contain no transaction.
  public static func transaction(
    in bytes: UnsafeRawBufferPointer
  ) -> (database: String, token: [UInt8])? {
    var reader = ProtobufReader(bytes)
    var database = ""
    var token: [UInt8] = []
    do throws(FirestoreError) {
      while let tag = try reader.nextTag() {
        switch tag.field {
        case 1: database = try reader.string(tag)
        case 3: token = try reader.bytes(tag)
        default: try reader.skip(tag)
        }
      }
    } catch {
      // The fields before the malformed part were read.
    }
    return token.isEmpty ? nil : (database, token)
  }
}

/// A `BatchWriteRequest`.
public struct BatchWriteRequest: Hashable, Sendable {
  /// The database's name as it was sent.
  public var database = ""
  /// The writes in order.
  public var writes: [Write] = []

  /// Decodes a request, without keeping a reference to its bytes.
  ///
  /// - Throws: INVALID_ARGUMENT if the request is malformed.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError) {
    var reader = ProtobufReader(bytes)
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1:
        database = try reader.string(tag)
      case 2:
        var nested = try reader.message(tag)
        writes.append(try nested.write())
      default: try reader.skip(tag)
      }
    }
  }
}

/// A `WriteRequest`: one message of a Write stream.
public struct WriteStreamRequest: Hashable, Sendable {
  /// The database's name as it was sent; empty if none was sent.
  public var database = ""
  /// The stream to resume; empty for none.
  public var streamID = ""
  /// The writes in order.
  public var writes: [Write] = []
  /// The last token that the client received; empty for none.
  public var streamToken: [UInt8] = []

  /// Decodes a message, without keeping a reference to its bytes.
  ///
  /// - Throws: INVALID_ARGUMENT if the message is malformed.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError) {
    var reader = ProtobufReader(bytes)
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1:
        database = try reader.string(tag)
      case 2:
        streamID = try reader.string(tag)
      case 3:
        var nested = try reader.message(tag)
        writes.append(try nested.write())
      case 4:
        streamToken = try reader.bytes(tag)
      default: try reader.skip(tag)
      }
    }
  }
}
