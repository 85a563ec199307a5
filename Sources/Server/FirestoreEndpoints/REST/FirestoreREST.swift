// Serves Firestore's REST interface. A request is converted to the message of the gRPC method, the method runs, and
// its response is written as JSON.

import FirestoreEngine
import JSON
import FirestoreModel
package import GRPCFraming
package import Logging
package import NIOCore
import NIOHPACK
package import NIOHTTP1
package import Ports
import RealtimeModel

/// Serves Firestore's REST requests with the methods of the gRPC service.
package struct FirestoreREST: Sendable {
  package let methods: GRPCMethods
  package let log: Logger
  /// Maximum size of a document, in bytes.
  package var documentBytes = FirestoreLimits.standard.documentBytes
  /// Ends the transaction of a Commit whose other fields cannot be read.
  package var endTransaction: @Sendable (ByteBuffer, GRPCRequestHead) -> Void = { _, _ in }

  /// Serves REST with these gRPC methods.
  package init(
    methods: GRPCMethods, log: Logger, documentBytes: Int = FirestoreLimits.standard.documentBytes,
    endTransaction: @escaping @Sendable (ByteBuffer, GRPCRequestHead) -> Void = { _, _ in }
  ) {
    self.methods = methods
    self.log = log
    self.documentBytes = documentBytes
    self.endTransaction = endTransaction
  }

  /// Returns the call of a request; nil if no gRPC method has its HTTP method and path.
  func call(_ request: HTTPRequest) throws(FirestoreError) -> FirestoreRESTCall? {
    try FirestoreRESTCall(request)
  }

  /// The estimated size of a method's response in bytes. A document in JSON takes up to twice its size. The results of a
  /// streaming method are not included, since its stream counts them.
  func expectedBytes(of method: FirestoreRESTMethod) -> Int {
    method.expectedBytes == 0 || method.isStream
      ? method.expectedBytes : max(method.expectedBytes, 2 * documentBytes)
  }

  /// Serves a call off the event loop. The end of the exchange cancels it.
  func serve(_ call: FirestoreRESTCall, _ request: HTTPRequest, _ responder: HTTPResponder) {
    responder.start {
      // A read that was cancelled does no work: some clients cancel calls as fast as they make them.
      let head = Self.head(call.method.name, request.head, request.target)
      if Task.isCancelled, onlyReads(head) { return }
      do {
        try await run(call, head, try message(of: call, request.body, head), responder)
      } catch {
        let status = GRPCStatus(of: error, log, call.method.name)
        // A call with an unsupported response format gets a single error object, even if its method responds with an
        // array.
        let isInArray = call.method.isStream && call.formatError == nil
        responder.respond(.error(FirestoreError(status), inArray: isInArray))
      }
    }
  }

  private func onlyReads(_ head: GRPCRequestHead) -> Bool {
    switch try? methods.method(of: head) {
    case .reading, .serverStreaming: true
    default: false
    }
  }

  private func message(
    of call: FirestoreRESTCall, _ body: ByteBuffer, _ head: GRPCRequestHead
  ) throws(FirestoreError) -> ByteBuffer {
    do throws(FirestoreError) {
      return try call.message(body)
    } catch {
      if let rejected = call.transaction(in: body) { endTransaction(rejected, head) }
      throw error
    }
  }

  private func run(
    _ call: FirestoreRESTCall, _ head: GRPCRequestHead, _ message: ByteBuffer, _ responder: HTTPResponder
  ) async throws {
    switch try methods.method(of: head) {
    case .unary(let body), .reading(_, let body), .updating(let body):
      try respond(try await body(head, message), call, responder)
    case .unaryCallback(let start):
      try respond(try await outcome { start(head, message, $0) }.get(), call, responder)
    case .serverStreaming(let body):
      guard let response = call.method.response else { return responder.respond(.json(.ok, "{}\n")) }
      let stream = FirestoreRESTStream(responder, of: response)
      do {
        try await body(head, message, stream)
        stream.finish(.ok)
      } catch {
        stream.finish(GRPCStatus(of: error, log, head.path))
      }
    case .duplex:
      // In Firebase, both bidirectional streaming methods have a REST path, which responds to every request with 400.
      throw FirestoreError.invalidArgument("This method is only available via gRPC or WebChannel (not REST).")
    }
  }

  private func respond(_ framed: ByteBuffer, _ call: FirestoreRESTCall, _ responder: HTTPResponder) throws {
    // If the task was cancelled, no client would read the response.
    try Task.checkCancellation()
    responder.respond(try Self.response(framed, call.method.response))
  }

  private static func response(_ framed: ByteBuffer, _ name: MessageName?) throws -> HTTPResponse {
    var framed = framed
    guard let name, let message = framed.readGRPCMessage() else { return .json(.ok, "{}\n") }
    var writer = JSONWriter(capacity: message.readableBytes * 2 + 64)
    try FirestoreJSON.write(message, as: name, to: &writer)
    writer.lineFeed()
    return .json(.ok, ByteBuffer(bytes: writer.bytes))
  }

  /// Returns the error response to a request whose head is sufficient to reject it, before its body is stored; nil for
  /// any other request.
  func rejection(of head: HTTPRequestHead) -> HTTPResponse? {
    do throws(GRPCStatus) {
      try methods.admit(Self.head("", head, try? RequestTarget(head.uri)))
      return nil
    } catch {
      return .error(FirestoreError(error))
    }
  }

  /// Returns a gRPC request head with the part of the HTTP head that methods need: the caller's credential, from
  /// every place that contains it.
  private static func head(
    _ method: String, _ request: HTTPRequestHead, _ target: RequestTarget?
  ) -> GRPCRequestHead {
    var headers = HPACKHeaders()
    for authorization in request.headers["authorization"] {
      headers.add(name: "authorization", value: authorization)
    }
    for parameter in target?.parameters ?? [] where ["access_token", "oauth_token"].contains(parameter.name) {
      headers.add(name: "authorization", value: "Bearer \(parameter.value)")
    }
    return GRPCRequestHead(path: "/\(FirestoreService.name)/\(method)", headers: headers)
  }
}

extension HTTPResponse {
  static let jsonHeaders: HTTPHeaders = ["content-type": "application/json; charset=utf-8"]

  /// A short JSON response.
  package static func json(_ status: HTTPResponseStatus, _ text: String) -> HTTPResponse {
    .json(status, ByteBuffer(string: text))
  }
}
