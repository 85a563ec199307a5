// The registration of a listener. The app uses it to remove the listener.

import FirebaseCore
public import Foundation
import Locking

/// A listener that can be removed.
public protocol ListenerRegistration: NSObjectProtocol {
  /// Removes the listener. It receives no events after this method returns. Further calls have no effect.
  func remove()
}

/// The source of a listener's snapshots.
public enum ListenSource: UInt, Sendable {
  /// The cache first, and then the server.
  case `default` = 0
  /// The cache only.
  case cache = 1
}

/// The options of a snapshot listener.
open class SnapshotListenOptions: NSObject, @unchecked Sendable {
  // SAFETY: constants only.
  /// The source of the snapshots.
  public let source: ListenSource
  /// Whether the listener also receives snapshots in which only the metadata changed.
  public let includeMetadataChanges: Bool

  /// The default options: snapshots from the cache and the server, without changes of metadata only.
  public override convenience init() { self.init(source: .default, includeMetadataChanges: false) }

  private init(source: ListenSource, includeMetadataChanges: Bool) {
    self.source = source
    self.includeMetadataChanges = includeMetadataChanges
  }

  /// The same options with another value of `includeMetadataChanges`.
  @discardableResult
  public func withIncludeMetadataChanges(_ includeMetadataChanges: Bool) -> SnapshotListenOptions {
    SnapshotListenOptions(source: source, includeMetadataChanges: includeMetadataChanges)
  }

  /// The same options with another source.
  @discardableResult
  public func withSource(_ source: ListenSource) -> SnapshotListenOptions {
    SnapshotListenOptions(source: source, includeMetadataChanges: includeMetadataChanges)
  }

  var internalOptions: ListenerOptions {
    ListenerOptions(includeMetadataChanges: includeMetadataChanges, cacheOnly: source == .cache)
  }
}

/// Whether a listener was removed. It is checked directly before each call, so that no event arrives after `remove()`.
final class CancellationFlag: Sendable {
  private let flag = Guarded(false)
  var isCancelled: Bool { flag.withLock { $0 } }
  func cancel() { flag.withLock { $0 = true } }
}

final class SnapshotListenerRegistration: NSObject, ListenerRegistration, Sendable {
  private let cancellation: CancellationFlag
  private let stop: @Sendable () -> Void

  init(_ cancellation: CancellationFlag, stop: @escaping @Sendable () -> Void) {
    self.cancellation = cancellation
    self.stop = stop
  }

  func remove() {
    cancellation.cancel()
    stop()
  }
}

/// A closure of the app that is not Sendable. It is safe to pass between threads, because it is called only
/// on the callback queue. That queue is serial unless the app chose another.
struct AppClosure<Function>: @unchecked Sendable {
  let call: Function
}
