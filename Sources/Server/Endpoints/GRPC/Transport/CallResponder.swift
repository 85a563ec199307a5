// The writing side of one call, whatever carries it: gRPC, REST or WebChannel.
//
// Invariant: a sender waits while the client does not read, so what is queued for one call stays near its watermark,
// whoever produces it.

public import GRPCFraming
public import NIOCore

/// Writes one call's answers; usable from any task or thread.
public protocol CallResponder: Sendable {
  /// Sends framed messages, and returns once the client can take more.
  /// - Throws: `CancellationError` once the client is gone.
  func send(_ framed: ByteBuffer) async throws

  /// Ends the call with a status; what comes later is ignored.
  func finish(_ status: GRPCStatus)

  /// Stops or resumes the delivery of request messages, so that a client cannot queue work without bound.
  func setReading(_ enabled: Bool)

  /// Accounts anew for the request bytes that the call keeps, after it has let go of some.
  func updateHeldBytes()

  /// Runs work of the call. It is not cancelled with the call: it ends by itself when sending fails.
  func start(_ operation: @escaping @Sendable () async -> Void)
}
