// Fuzz target: Firestore's messages as JSON. The protobuf runtime reads accepted JSON, and its binary form, as the same
// message. The message is written as JSON again, and reads back as the same bytes. Rejected JSON fails with
// INVALID_ARGUMENT.

import FirestoreModel
import FirestoreProtobuf
import JSON
import NIOCore
import RealtimeModel
import SwiftProtobuf

@testable import FirestoreEndpoints
@testable import Ports

/// The first byte selects the message; the rest is its JSON, and the parameters of a query.
func fuzzRESTJSON(_ input: UnsafeRawBufferPointer) throws {
  guard let first = input.first else { return }
  let names = MessageName.allCases
  let name = names[Int(first) % names.count]
  let text = Array(input.dropFirst())
  do {
    let wire = try FirestoreJSON.message(ByteBuffer(bytes: text), as: name)
    try compare(wire, text, name)
  } catch let error as FirestoreError {
    try require(error.code == .invalidArgument, "\(error) is not INVALID_ARGUMENT")
  }

  guard let target = try? RequestTarget("/?" + String(decoding: text, as: UTF8.self)) else { return }
  let parameters = target.parameters.map { FirestoreJSON.Parameter(name: $0.name, text: $0.value) }
  var writer = WireWriter(capacity: 64)
  do {
    try FirestoreJSON.write(parameters, as: name, to: &writer)
    try checkRoundTrip(writer.finish(), name)
  } catch let error as FirestoreError {
    try require(error.code == .invalidArgument, "\(error) is not INVALID_ARGUMENT")
  }
}

private func compare(_ wire: ByteBuffer, _ text: [UInt8], _ name: MessageName) throws {
  try checkRoundTrip(wire, name)
  guard let type = generated[name] else { return }
  let bytes = Array(wire.readableBytesView)
  let options = BinaryDecodingOptions.deep
  let ours = try require(
    try? type.init(serializedBytes: bytes, options: options), "the protobuf runtime does not read \(name)")
  // The runtime rejects some input that Hearth accepts, such as members of unknown messages. Input that both accept
  // has one meaning.
  guard !text.isEmpty, let theirs = try? type.init(jsonUTF8Bytes: text, options: .deep) else { return }
  try require(
    (try? ours.canonicalBytes) == (try? theirs.canonicalBytes), "the protobuf runtime reads another \(name)")
}

private func checkRoundTrip(_ wire: ByteBuffer, _ name: MessageName) throws {
  var json = JSONWriter()
  do throws(FirestoreError) {
    try FirestoreJSON.write(wire, as: name, to: &json)
  } catch {
    throw PropertyFailure(description: "the message \(name) cannot be written: \(error)")
  }
  let again = try require(
    try? FirestoreJSON.message(ByteBuffer(bytes: json.bytes), as: name),
    "written JSON of \(name) is rejected")
  try require(again == wire, "written JSON of \(name) reads differently")
}

/// Requests whose generated types verify the parser.
private let generated: [MessageName: any Message.Type] = [
  .value: Google_Firestore_V1_Value.self,
  .document: Google_Firestore_V1_Document.self,
  .commitRequest: Google_Firestore_V1_CommitRequest.self,
  .batchWriteRequest: Google_Firestore_V1_BatchWriteRequest.self,
  .writeRequest: Google_Firestore_V1_WriteRequest.self,
  .listenRequest: Google_Firestore_V1_ListenRequest.self,
  .runQueryRequest: Google_Firestore_V1_RunQueryRequest.self,
  .runAggregationQueryRequest: Google_Firestore_V1_RunAggregationQueryRequest.self,
  .partitionQueryRequest: Google_Firestore_V1_PartitionQueryRequest.self,
  .batchGetDocumentsRequest: Google_Firestore_V1_BatchGetDocumentsRequest.self,
  .beginTransactionRequest: Google_Firestore_V1_BeginTransactionRequest.self,
  .structuredQuery: Google_Firestore_V1_StructuredQuery.self,
]

extension BinaryDecodingOptions {
  /// Decodes messages that are nested deeper than Hearth's JSON limit.
  fileprivate static var deep: BinaryDecodingOptions {
    var options = BinaryDecodingOptions()
    options.messageDepthLimit = 400
    return options
  }
}

extension JSONDecodingOptions {
  fileprivate static var deep: JSONDecodingOptions {
    var options = JSONDecodingOptions()
    options.messageDepthLimit = 400
    return options
  }
}

extension Message {
  /// The bytes of the message, with map entries in order.
  fileprivate var canonicalBytes: [UInt8] {
    get throws {
      var options = BinaryEncodingOptions()
      options.useDeterministicOrdering = true
      return try serializedBytes(options: options)
    }
  }
}
