// Tests rejected commits over sockets: the named transaction ends, also if the commit cannot be decoded.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOCore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Rejected commits", .timeLimit(.minutes(5)))
struct RejectedCommitMethodTests {
  /// Writes that are rejected for a reason other than the stored documents.
  struct RejectedWrites: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let writes: [Proto.Write]

    init(_ name: String, _ writes: Proto.Write...) {
      testDescription = name
      self.writes = writes
    }
  }

  private static let commit = "/v1/\(FirestoreTestServer.documents):commit"

  private static func text(_ count: Int) -> Proto.Value { .text(String(repeating: "x", count: count)) }

  private static func array(_ element: Proto.Value) -> Proto.Value {
    .with { $0.arrayValue.values = [element] }
  }

  private static func nested(_ levels: Int) -> Proto.Value {
    (0..<levels).reduce(.int(1)) { value, _ in .with { $0.mapValue.fields = ["m": value] } }
  }

  static let cases: [RejectedWrites] = [
    RejectedWrites("a document beyond 1 MiB", .set("c/x", ["a": text(600_000), "b": text(600_000)])),
    RejectedWrites("a value that is too long", .set("c/x", ["a": text(1_048_488)])),
    RejectedWrites("a reserved field", .set("c/x", ["__a__": .int(1)])),
    RejectedWrites("an array in an array", .set("c/x", ["a": array(array(.int(1)))])),
    RejectedWrites("a value of 21 levels", .set("c/x", ["a": nested(21)])),
    RejectedWrites(
      "an invalid field path",
      .with {
        $0 = .set("c/x", [:])
        $0.updateMask.fieldPaths = ["a..b"]
      }),
    RejectedWrites(
      "another database", .with { $0.delete = "projects/demo-test/databases/other/documents/a/b" }),
    RejectedWrites("a collection's name", .set("a/b/c", [:])),
    RejectedWrites("nothing to write", .init()),
    RejectedWrites("an invalid write after a valid one", .set("c/x", [:]), .set("c/y", ["": .int(1)])),
  ]

  @Test("A rejected commit ends its transaction, over gRPC and REST", arguments: cases)
  func rejected(testCase: RejectedWrites) async throws {
    try await FirestoreTestServer.serving { server in
      let transaction = try await begin(server.client)
      let rejected = await status {
        try await server.client.commit(testCase.writes, transaction: transaction)
      }
      #expect(rejected.code == .invalidArgument)
      try await expectEnd(of: transaction, server.client)

      let second = try await begin(server.client)
      let request = Google_Firestore_V1_CommitRequest.with {
        $0.database = FirestoreTestServer.database
        $0.writes = testCase.writes
        $0.transaction = second
      }
      let reply = try await server.rest("POST", Self.commit, try request.jsonString())
      #expect(reply.status == 400)
      try await expectEnd(of: second, server.client)
    }
  }

  @Test("A request above 10 MiB ends the transaction that it names")
  func largeRequest() async throws {
    try await FirestoreTestServer.with { client in
      let transaction = try await begin(client)
      let writes = (0..<11).map { Proto.Write.set("c/x\($0)", ["a": Self.text(1_000_000)]) }
      let rejected = await status { try await client.commit(writes, transaction: transaction) }
      #expect(rejected.code == .invalidArgument)
      #expect(rejected.message.hasPrefix("Request payload size exceeds the limit"))
      try await expectEnd(of: transaction, client)
    }
  }

  @Test("If a message is cut off after its transaction field, the transaction still ends")
  func truncatedMessage() async throws {
    try await FirestoreTestServer.with { client in
      let transaction = try await begin(client)
      let request = Google_Firestore_V1_CommitRequest.with {
        $0.database = FirestoreTestServer.database
        $0.transaction = transaction
      }
      // The field announces a write of five bytes, but no bytes follow.
      let bytes: [UInt8] = try request.serializedBytes() + [0x12, 0x05]
      var message = ByteBuffer()
      message.writeGRPCMessage(bytes: bytes)
      let call = try await client.open("Commit")
      try? await call.send(raw: message, endStream: true)
      #expect(try await call.status().code == .invalidArgument)
      try await expectEnd(of: transaction, client)
    }
  }

  @Test("JSON that cannot be decoded as a commit ends the transaction that it names")
  func invalidJSON() async throws {
    try await FirestoreTestServer.serving { server in
      let bodies: [(String) -> String] = [
        { #"{"writes":[{"x":1}],"transaction":"\#($0)"}"# },
        { #"{"transaction":"\#($0)","writes":[{"# },
        { #"{"transaction":null,"writes":{},"transaction":"\#($0)"}"# },
        {
          #"{"writes":[{"update":{"name":"n","fields":{"a":{"bytesValue":"?"}}}}],"transaction":"\#($0)"}"#
        },
      ]
      for body in bodies {
        let transaction = try await begin(server.client)
        let reply = try await server.rest("POST", Self.commit, body(transaction.base64EncodedString()))
        #expect(reply.status == 400)
        try await expectEnd(of: transaction, server.client)
      }
      // The transaction is a query parameter, next to an unknown parameter.
      let transaction = try await begin(server.client)
      let text = try #require(
        transaction.base64EncodedString().addingPercentEncoding(withAllowedCharacters: .alphanumerics))
      let reply = try await server.rest("POST", "\(Self.commit)?transaction=\(text)&nope=1", "{}")
      #expect(reply.status == 400)
      try await expectEnd(of: transaction, server.client)
    }
  }

  @Test(
    "An unknown response format ends the transaction that the commit names",
    arguments: [
      "alt=xml", "$alt=proto", "callback=f", "alt=media&callback=f", "$alt=json%3Benum-encoding=name",
      "$alt=proto%3Benum-encoding=int", "alt=json&$alt=media",
    ])
  func unknownFormat(parameter: String) async throws {
    try await FirestoreTestServer.serving { server in
      let transaction = try await begin(server.client)
      let body = #"{"writes":[],"transaction":"\#(transaction.base64EncodedString())"}"#
      let reply = try await server.rest("POST", "\(Self.commit)?\(parameter)", body)
      #expect(reply.status == 400 && reply.error["status"] == .string("INVALID_ARGUMENT"))
      try await expectEnd(of: transaction, server.client)
      // A streaming method returns the same error, as an object and not in an array.
      let query = try await server.rest(
        "POST", "/v1/\(FirestoreTestServer.documents):runQuery?\(parameter)", "{}")
      #expect(query.status == 400 && query.json.array == nil)
    }
  }

  // MARK: Transactions

  /// Begins a transaction that locks a document.
  private func begin(_ client: GRPCTestClient) async throws -> Data {
    try await client.commit([.set("c/held", ["n": .int(1)])])
    let request = Google_Firestore_V1_BeginTransactionRequest.with {
      $0.database = FirestoreTestServer.database
    }
    let begun: Google_Firestore_V1_BeginTransactionResponse = try await client.unary(
      "BeginTransaction", request)
    let _: Proto.Document = try await client.unary("GetDocument", read(begun.transaction))
    return begun.transaction
  }

  private func read(_ transaction: Data) -> Google_Firestore_V1_GetDocumentRequest {
    .with {
      $0.name = "\(FirestoreTestServer.documents)/c/held"
      $0.transaction = transaction
    }
  }

  /// Expects that a transaction has ended and that another client may write its document.
  private func expectEnd(
    of transaction: Data, _ client: GRPCTestClient, _ location: SourceLocation = #_sourceLocation
  ) async throws {
    let write = await status { try await client.commit([.set("c/held", ["n": .int(2)])]) }
    #expect(write == .ok, sourceLocation: location)
    let end = await status {
      let _: Proto.Document = try await client.unary("GetDocument", read(transaction))
    }
    #expect(
      end
        == GRPCStatus(
          .invalidArgument, "The referenced transaction has expired or is no longer valid."),
      sourceLocation: location)
  }

  private func status(_ body: () async throws -> Void) async -> GRPCStatus {
    do {
      try await body()
      return .ok
    } catch let status as GRPCStatus {
      return status
    } catch {
      return GRPCStatus(.unknown, "\(error)")
    }
  }
}
