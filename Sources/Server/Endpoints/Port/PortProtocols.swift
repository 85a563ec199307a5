// What a port speaks once a connection has shown its protocol.

public import NIOCore

/// The handlers a port installs for each protocol.
///
/// Both closures run on the connection's event loop and must not block. An initializer that throws closes its
/// connection or stream.
public struct PortProtocols: Sendable {
  /// Installs the whole pipeline of an HTTP/1.1 connection. The channel is active already; `channelActive` is fired
  /// once through what was installed, then the bytes that were read so far follow.
  public var http1: @Sendable (any Channel) throws -> Void

  /// Makes the initializer of one HTTP/2 connection's streams, which take `HTTP2Frame.FramePayload`; called once a
  /// connection, so that its streams can share state. Nil for a port that speaks HTTP/1.1 alone.
  public var http2: (@Sendable (any Channel) throws -> @Sendable (any Channel) throws -> Void)?

  /// Names the handlers.
  public init(
    http1: @escaping @Sendable (any Channel) throws -> Void,
    http2: (@Sendable (any Channel) throws -> @Sendable (any Channel) throws -> Void)? = nil
  ) {
    self.http1 = http1
    self.http2 = http2
  }

  /// The name of the handler that encrypts a connection, for protocols that behave otherwise over TLS.
  static let encryption = "encryption"
}
