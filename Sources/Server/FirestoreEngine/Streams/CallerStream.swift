// A stream that ends with the credentials of its caller: a Listen or a Write stream.

package import Access
package import FirestoreModel

/// A stream that ends with the credentials of its caller.
package protocol CallerStream: AnyObject, Sendable {
  /// The caller, which must not change while the stream is in ``CallerStreams``.
  var caller: Principal { get }

  /// Discards queued work: from now on the stream can only end with the error. Called on any thread; must be quick.
  func invalidate(with error: FirestoreError)

  /// Ends a stream that was invalidated. Returns when the end is passed to the client's connection; immediately if the stream is
  /// still working, and therefore ends by itself.
  func endInvalidated() async
}
