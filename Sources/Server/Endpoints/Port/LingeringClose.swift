// The end of an HTTP/1.1 connection whose peer may still be sending. Closed at once, what it sends would be answered by
// a reset, which can destroy the last answer before the peer has read it.

import NIOCore

extension Channel {
  /// Ends the answer's direction, then closes when the peer does, or after `grace`. What still comes is the
  /// pipeline's to drop.
  func closeLingering(_ grace: TimeAmount) {
    let closing = eventLoop.scheduleTask(in: grace) { self.close(promise: nil) }
    closeFuture.whenComplete { _ in closing.cancel() }
    close(mode: .output).whenFailure { _ in self.close(promise: nil) }
  }
}
