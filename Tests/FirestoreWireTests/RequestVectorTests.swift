// Tests the published request vectors. Every message in them must parse, and converting it to the model and back must
// not change it.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import SwiftProtobuf
import Testing

@Suite("Request vectors", .timeLimit(.minutes(10)))
struct RequestVectorTests {
  /// The number of cases and messages checked so far.
  struct Tally {
    var run = 0
    var skipped = 0
    var messages = 0
  }

  @Test(
    "Every request, query and response of the vectors is unchanged after conversion to the model and back",
    .enabled(if: ConformanceVectors.areAvailable, "HEARTH_CONFORMANCE is not set"))
  func vectors() throws {
    let files = try ConformanceVectors.files(in: "firestore-requests")
    var tally = Tally()
    for file in files {
      let cases = try #require(try ConformanceVectors.object(at: file)["tests"] as? [[String: Any]])
      for vector in cases {
        let before = tally.messages
        for (kind, body) in vector {
          guard let body = body as? [String: Any] else { continue }
          try check(kind, body, &tally)
        }
        // A case without a message describes an error of the client.
        if tally.messages == before { tally.skipped += 1 } else { tally.run += 1 }
      }
    }
    print(
      "request vectors: \(tally.run) run with \(tally.messages) messages, \(tally.run) passed, "
        + "\(tally.skipped) skipped (client errors without a message)")
    #expect(tally.run > 0)
  }

  private func check(_ kind: String, _ body: [String: Any], _ tally: inout Tally) throws {
    switch kind {
    case "query": if let query = body["query"] { try check(query: query, body["collPath"], &tally) }
    case "get":
      let request: Google_Firestore_V1_GetDocumentRequest = try message(body["request"])
      #expect(try DocumentName(parsing: request.name).description == request.name)
      tally.messages += 1
    case "listen":
      for response in try #require(body["responses"] as? [Any]) { try check(response: response, &tally) }
    default: if let request = body["request"] { try check(commit: request, &tally) }
    }
  }

  private func check(commit json: Any, _ tally: inout Tally) throws {
    let request: Google_Firestore_V1_CommitRequest = try message(json)
    let database = try DatabaseName(parsing: request.database)
    #expect(!request.writes.isEmpty)
    for message in request.writes {
      let write = try Write(message)
      #expect(Google_Firestore_V1_Write(write) == message)
      #expect(throws: Never.self) { try write.validate(in: database) }
      // Applied to a missing document, the write gives a document that can be stored and read back.
      if let fields = write.apply(to: nil, requestTime: Timestamp(seconds: 1)).fields {
        #expect(try DocumentCodec.decodeFields(DocumentCodec.encode(fields: fields)) == fields)
      }
    }
    tally.messages += 1
  }

  private func check(query json: Any, _ collection: Any?, _ tally: inout Tally) throws {
    let message: Google_Firestore_V1_StructuredQuery = try message(json)
    let query = try StructuredQuery(message)
    #expect(try StructuredQuery(Google_Firestore_V1_StructuredQuery(query)) == query)
    let path = try #require(collection as? String)
    let parent = try ParentName(parsing: String(path.prefix(upTo: try #require(path.lastIndex(of: "/")))))
    #expect(throws: Never.self) { try NormalizedQuery(Query(parent: parent, query)) }
    tally.messages += 1
  }

  private func check(response json: Any, _ tally: inout Tally) throws {
    let response: Google_Firestore_V1_ListenResponse = try message(json)
    let bytes: [UInt8] = try response.serializedBytes()
    #expect(try Google_Firestore_V1_ListenResponse(serializedBytes: bytes) == response)
    if case .documentChange(let change)? = response.responseType {
      let document = try Document(change.document)
      let encoded = DocumentCodec.encode(document)
      #expect(try DocumentCodec.decode(encoded) == document)
      #expect(try Google_Firestore_V1_Document(serializedBytes: encoded) == change.document)
    }
    tally.messages += 1
  }

  private func message<M: Message>(_ json: Any?) throws -> M {
    try M(jsonUTF8Data: JSONSerialization.data(withJSONObject: try #require(json)))
  }
}
