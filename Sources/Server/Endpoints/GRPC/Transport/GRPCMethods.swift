// The methods a port serves over gRPC, by path, and what a method is: one message in and one out, one in and a
// stream out, or a conversation.

public import FirestoreEngine
public import GRPCFraming
public import NIOCore

/// The gRPC methods of one port.
public struct GRPCMethods: Sendable {
  /// One way to serve a call. Messages in have no prefix; messages out are framed already
  /// (`ByteBuffer.writeGRPCMessage`), so that bytes made for many streams are framed once.
  ///
  /// What is thrown ends the call: a ``GRPCStatus`` as it is, anything else as INTERNAL without detail.
  public enum Method: Sendable {
    /// One request that changes nothing, one answer, which may be as large as a document and `page` bytes: the call
    /// starts once its connection has room.
    case reading(page: Int, @Sendable (GRPCRequestHead, ByteBuffer) async throws -> ByteBuffer)
    /// One request that changes something, one answer, which may be as large as a document: the call starts once its
    /// connection has room, and the server has.
    case updating(@Sendable (GRPCRequestHead, ByteBuffer) async throws -> ByteBuffer)
    /// One request, one answer, which is small. A call that others may wait for must be served so.
    case unary(@Sendable (GRPCRequestHead, ByteBuffer) async throws -> ByteBuffer)
    /// One request, one small response, without a task: the closure reports the outcome to its callback exactly
    /// once, from any thread, and returns a handle by which the call is cancelled.
    case unaryCallback(
      @Sendable (GRPCRequestHead, ByteBuffer, @escaping @Sendable (Result<ByteBuffer, any Error>) -> Void) ->
        any CancellableCall)
    /// One request, any number of answers.
    case serverStreaming(@Sendable (GRPCRequestHead, ByteBuffer, any CallResponder) async throws -> Void)
    /// A conversation; the closure runs on the stream's event loop.
    case duplex(@Sendable (GRPCRequestHead, any CallResponder) throws -> any GRPCCall)
  }

  private let methods: [String: Method]
  private let services: Set<String>
  /// Refuses a call by its head alone, before anything of its body is kept.
  let admit: @Sendable (GRPCRequestHead) throws(GRPCStatus) -> Void
  /// The status of a message that is too large to be taken, given its bytes where they are known.
  let oversized: @Sendable (Int?) -> GRPCStatus

  /// Names one service's methods.
  /// - Parameters:
  ///   - oversized: the status of a message that is too large to be taken, given its bytes where they are known.
  ///   - admit: throws for calls that are refused whatever they say.
  public init(
    service: String, _ methods: [String: Method], oversized: @escaping @Sendable (Int?) -> GRPCStatus,
    admit: @escaping @Sendable (GRPCRequestHead) throws(GRPCStatus) -> Void = { _ in }
  ) {
    self.admit = admit
    self.oversized = oversized
    self.methods = Dictionary(uniqueKeysWithValues: methods.map { ("/\(service)/\($0.key)", $0.value) })
    self.services = [service]
  }

  /// The method of a path.
  /// - Throws: UNIMPLEMENTED that names what is missing, the service or the method.
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

/// The server's side of a conversation, confined to the stream's event loop: every call arrives on it.
public protocol GRPCCall: AnyObject {
  /// Takes the next request message.
  func receive(_ message: ByteBuffer)
  /// The next message is too large to be taken: the call ends with this status, in the message's turn. Nothing follows.
  func receive(refusal: GRPCStatus)
  /// The client will send nothing more. The call goes on until it is finished through its responder.
  func halfClose()
  /// The server is about to stop: finish as soon as what is under way is answered.
  func drain()
  /// The stream is gone, whoever ended it: release everything. Called exactly once, last.
  func end()
  /// Bytes of request messages that the call has taken and still keeps: they count against what its connection may
  /// hold. A call that keeps any says so with `CallResponder.updateHeldBytes` when it lets go of them.
  var heldBytes: Int { get }
}

extension GRPCCall {
  /// By default a call keeps nothing.
  public var heldBytes: Int { 0 }
}
