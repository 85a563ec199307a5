// Holds the initializers of the protocols that a port serves. `ProtocolSniffer` selects one for each connection.

package import NIOCore

/// The initializers that a port runs for each protocol.
///
/// Both closures run on the connection's event loop and must not block. If an initializer throws, its connection or stream
/// closes.
package struct PortProtocols: Sendable {
  /// Installs the complete pipeline of an HTTP/1.1 connection. The channel is already active. The installed handlers
  /// then receive `channelActive` once, followed by the bytes that the sniffer has read.
  package var http1: @Sendable (any Channel) throws -> Void

  /// Returns the initializer of the streams of one HTTP/2 connection. Stream channels carry `HTTP2Frame.FramePayload`.
  /// This closure runs once per connection, so that the streams can share state. Nil for a port that serves HTTP/1.1
  /// only.
  package var http2: (@Sendable (any Channel) throws -> @Sendable (any Channel) throws -> Void)?

  /// Creates the protocols of a port.
  package init(
    http1: @escaping @Sendable (any Channel) throws -> Void,
    http2: (@Sendable (any Channel) throws -> @Sendable (any Channel) throws -> Void)? = nil
  ) {
    self.http1 = http1
    self.http2 = http2
  }

  /// The name of the TLS handler in the pipeline, by which other code detects TLS.
  static let tlsHandlerName = "encryption"
}
