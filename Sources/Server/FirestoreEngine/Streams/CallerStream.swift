// A Listen or Write stream, which the server ends when the caller's credentials expire or are revoked.

package import Access
package import FirestoreModel

/// A stream that the server ends when the caller's credentials expire or are revoked.
package protocol CallerStream: AnyObject, Sendable {
  /// The caller, which must not change while the stream is in ``CallerStreams``.
  var caller: Principal { get }

  /// Discards queued work: from now on the stream can only end with the error. Called on any thread; must be quick.
  func invalidate(with error: FirestoreError)

  /// Ends a stream that was invalidated. Returns when the end is passed to the client's connection; immediately if the stream is
  /// still working, and therefore ends by itself.
  func endInvalidated() async
}
