// Firestore's REST interface: each request becomes the message that gRPC would have carried, is served by the same method,
// and the answer is written as JSON.

import FirestoreModel
import GRPCFraming
import JSON
import Logging
import NIOCore
import NIOHPACK
import NIOHTTP1
import RealtimeModel

struct FirestoreREST: Sendable {
  let methods: GRPCMethods
  let log: Logger
  /// The largest document.
  var documentBytes = FirestoreLimits.standard.documentBytes
  /// Ends the transaction that a Commit names, where the rest of it cannot be read.
  var endTransaction: @Sendable (ByteBuffer, GRPCRequestHead) -> Void = { _, _ in }

  /// The call that a request asks for; nil where nothing is bound to its verb and path.
  func call(_ request: HTTPRequest) throws(FirestoreError) -> FirestoreRESTCall? {
    try FirestoreRESTCall(request)
  }

  /// About the bytes that the answer of a method may take up: a document in JSON may take twice its size.
  func expectedBytes(of method: FirestoreRESTMethod) -> Int {
    method.expectedBytes == 0 ? 0 : max(method.expectedBytes, 2 * documentBytes)
  }

  /// Serves a call beside the event loop; it is cancelled when its client goes.
  func serve(_ call: FirestoreRESTCall, _ request: HTTPRequest, _ responder: HTTPResponder) {
    responder.start {
      // A client that takes its calls back as fast as it makes them gets nothing read for them.
      let head = Self.head(call.method.name, request.head, request.target)
      if Task.isCancelled, onlyReads(head) { return }
      do {
        try await run(call, head, try message(of: call, request.body, head), responder)
      } catch {
        let status = GRPCStatus(of: error, log, call.method.name)
        // What is refused before its method is looked at has the plain form.
        let isInArray = call.method.isStream && call.refusal == nil
        responder.answer(.error(FirestoreError(status), inArray: isInArray))
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
      if let named = call.transaction(in: body) { endTransaction(named, head) }
      throw error
    }
  }

  private func run(
    _ call: FirestoreRESTCall, _ head: GRPCRequestHead, _ message: ByteBuffer, _ responder: HTTPResponder
  ) async throws {
    switch try methods.method(of: head) {
    case .unary(let body), .reading(_, let body), .updating(let body), .attempted(_, let body):
      let framed = try await body(head, message)
      // Nobody is left to read it.
      try Task.checkCancellation()
      responder.answer(try Self.answer(framed, call.method.answer))
    case .serverStreaming(let body):
      guard let answer = call.method.answer else { return responder.answer(.json(.ok, "{}\n")) }
      let stream = FirestoreRESTStream(responder, of: answer)
      do {
        try await body(head, message, stream)
        stream.finish(.ok)
      } catch {
        stream.finish(GRPCStatus(of: error, log, head.path))
      }
    case .duplex:
      // The product binds both conversations to a path, and answers 400 to whatever is asked of it.
      throw FirestoreError.invalidArgument("This method is only available via gRPC or WebChannel (not REST).")
    }
  }

  private static func answer(_ framed: ByteBuffer, _ name: MessageName?) throws -> HTTPResponse {
    var framed = framed
    guard let name, let message = framed.readGRPCMessage() else { return .json(.ok, "{}\n") }
    var writer = JSONWriter(capacity: message.readableBytes * 2 + 64)
    try FirestoreJSON.write(message, as: name, to: &writer)
    writer.lineFeed()
    return .json(.ok, ByteBuffer(bytes: writer.bytes))
  }

  /// The answer to a request that is refused by its head alone, before its body is kept.
  func refusal(of head: HTTPRequestHead) -> HTTPResponse? {
    do throws(GRPCStatus) {
      try methods.admit(Self.head("", head, try? RequestTarget(head.uri)))
      return nil
    } catch {
      return .error(FirestoreError(error))
    }
  }

  /// What a method needs to know of a request's head: who asks.
  private static func head(
    _ method: String, _ request: HTTPRequestHead, _ target: RequestTarget?
  ) -> GRPCRequestHead {
    var headers = HPACKHeaders()
    if let authorization = request.headers.first(name: "authorization") {
      headers.add(name: "authorization", value: authorization)
    } else if let token = target?["access_token"] ?? target?["oauth_token"] {
      headers.add(name: "authorization", value: "Bearer \(token)")
    }
    return GRPCRequestHead(path: "/\(FirestoreService.name)/\(method)", headers: headers)
  }
}

extension HTTPResponse {
  static let jsonHeaders: HTTPHeaders = ["content-type": "application/json; charset=utf-8"]

  /// A short answer in JSON.
  static func json(_ status: HTTPResponseStatus, _ text: String) -> HTTPResponse {
    .json(status, ByteBuffer(string: text))
  }
}
