// The gRPC methods of a port, found by path, and the kinds of methods: unary, server streaming and duplex.

package import FirestoreEngine
package import GRPCFraming
package import NIOCore

/// The gRPC methods of one port.
package struct GRPCMethods: Sendable {
  /// A function that serves a call. Request messages have no length prefix. Response messages are already framed by
  /// `ByteBuffer.writeGRPCMessage`, so that a message for many streams is framed once.
  ///
  /// An error that the function throws ends the call. A ``GRPCStatus`` is sent unchanged, any other error as
  /// INTERNAL without details.
  package enum Method: Sendable {
    /// A unary read. Its response may have the size of the largest document plus `page` bytes. The call starts when its
    /// connection has capacity for the response.
    case reading(page: Int, @Sendable (GRPCRequestHead, ByteBuffer) async throws -> ByteBuffer)
    /// A unary write whose response may be as large as a document. The call starts when its connection has
    /// capacity for the response. The server reserves memory for the response first.
    case updating(@Sendable (GRPCRequestHead, ByteBuffer) async throws -> ByteBuffer)
    /// A unary call with a small response. It reserves no capacity, so it never waits for other calls. A call that ends
    /// a transaction must therefore be of this kind or a `unaryCallback`: other calls may wait for the transaction.
    case unary(@Sendable (GRPCRequestHead, ByteBuffer) async throws -> ByteBuffer)
    /// A unary call with a small response, without a task. The closure calls its callback exactly once, from any
    /// thread, and returns a handle that cancels the call.
    case unaryCallback(
      @Sendable (GRPCRequestHead, ByteBuffer, @escaping @Sendable (Result<ByteBuffer, any Error>) -> Void) ->
        any CancellableCall)
    /// One request message and any number of response messages.
    case serverStreaming(@Sendable (GRPCRequestHead, ByteBuffer, any CallResponder) async throws -> Void)
    /// Any number of messages in both directions. The closure runs on the stream's event loop.
    case duplex(@Sendable (GRPCRequestHead, any CallResponder) throws -> any GRPCCall)
  }

  /// The methods by path.
  let methods: [String: Method]
  private let services: Set<String>
  /// Checks the head of a call. If it throws, the call is rejected before any of its body is stored.
  let admit: @Sendable (GRPCRequestHead) throws(GRPCStatus) -> Void
  /// Returns the status of a message that exceeds the limit. The argument is its size in bytes, if known.
  let oversized: @Sendable (Int?) -> GRPCStatus

  /// Creates the methods of one service.
  /// - Parameters:
  ///   - oversized: returns the status of a message that exceeds the limit. The argument is its size in bytes, if known.
  ///   - admit: checks the head of a call, and throws to reject the call.
  package init(
    service: String, _ methods: [String: Method], oversized: @escaping @Sendable (Int?) -> GRPCStatus,
    admit: @escaping @Sendable (GRPCRequestHead) throws(GRPCStatus) -> Void = { _ in }
  ) {
    self.admit = admit
    self.oversized = oversized
    self.methods = Dictionary(uniqueKeysWithValues: methods.map { ("/\(service)/\($0.key)", $0.value) })
    self.services = [service]
  }

  /// Returns the method of a request.
  /// - Throws: UNIMPLEMENTED with the name of the missing service or method.
  func method(of head: GRPCRequestHead) throws(GRPCStatus) -> Method {
    if let method = methods[head.path] { return method }
    guard services.contains(String(head.service)) else {
      throw GRPCStatus(
        .unimplemented, "The service of '\(head.path.prefix(200))' does not exist on this server.")
    }
    throw GRPCStatus(
      .unimplemented,
      "The method '\(head.method.prefix(100))' of \(head.service) is not implemented by this server.")
  }
}

/// The server's side of a duplex call. Every function is called on the stream's event loop.
package protocol GRPCCall: AnyObject {
  /// Receives the next request message.
  func receive(_ message: ByteBuffer)
  /// Called when the next message exceeds the limit. The call ends with this status after it has served the earlier
  /// messages. No message follows.
  func receive(rejection: GRPCStatus)
  /// The client sends no more messages. The call continues until its responder finishes it.
  func halfClose()
  /// The server is shutting down. The call should finish when its pending requests have responses.
  func drain()
  /// The stream has ended, for any reason. The call releases everything. Called exactly once, as the last function.
  func end()
  /// The bytes of received request messages that the call holds. They count against the limit of the connection. A
  /// call that holds bytes calls `CallResponder.updateHeldBytes` when it has released some.
  var heldBytes: Int { get }
}

extension GRPCCall {
  /// By default a call holds no bytes.
  package var heldBytes: Int { 0 }
}
