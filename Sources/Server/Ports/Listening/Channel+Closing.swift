// Closes connections: immediately, or after the peer had time to read.

package import NIOCore

extension Channel {
  /// Closes a connection immediately on its event loop. Under TLS it sends and awaits no close alerts.
  func disconnect() {
    if let tlsHandler = try? pipeline.syncOperations.context(name: PortProtocols.tlsHandlerName) {
      tlsHandler.close(promise: nil)
    } else {
      close(promise: nil)
    }
  }

  /// Half-closes the connection, then closes it when the peer closes, or after `grace`. The pipeline must drop further
  /// input.
  ///
  /// An HTTP/1.1 connection ends this way if its client may still be sending. After an immediate close the kernel would
  /// answer further bytes with a reset, which can destroy a response that the client has not read.
  package func closeLingering(_ grace: TimeAmount) {
    let closing = eventLoop.scheduleTask(in: grace) { self.close(promise: nil) }
    closeFuture.whenComplete { _ in closing.cancel() }
    close(mode: .output).whenFailure { _ in self.close(promise: nil) }
  }
}
