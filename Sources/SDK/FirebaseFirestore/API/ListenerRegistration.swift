// The app's end of a listener.

import FirebaseCore
public import Foundation
import Locking

/// A listener that can be removed.
public protocol ListenerRegistration: NSObjectProtocol {
  /// Stops the listener: after this returns it hears nothing more. Removing twice does no harm.
  func remove()
}

/// From where a listener may be answered.
public enum ListenSource: UInt, Sendable {
  /// The cache first, then the server.
  case `default` = 0
  /// The cache alone.
  case cache = 1
}

/// How a listener is answered.
public final class SnapshotListenOptions: NSObject, Sendable {
  /// From where.
  public let source: ListenSource
  /// Whether it hears of changes to metadata alone.
  public let includeMetadataChanges: Bool

  /// The defaults: from the server, without changes to metadata alone.
  public override convenience init() { self.init(source: .default, includeMetadataChanges: false) }

  private init(source: ListenSource, includeMetadataChanges: Bool) {
    self.source = source
    self.includeMetadataChanges = includeMetadataChanges
  }

  /// The same options with another choice about metadata.
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

/// Whether a listener still wants to hear anything; looked at right before each call, so that
/// nothing arrives after `remove()`.
final class CancellationFlag: Sendable {
  private let muted = Guarded(false)
  var isMuted: Bool { muted.withLock { $0 } }
  func mute() { muted.withLock { $0 = true } }
}

final class SnapshotListenerRegistration: NSObject, ListenerRegistration, Sendable {
  private let mute: CancellationFlag
  private let stop: @Sendable () -> Void

  init(_ mute: CancellationFlag, stop: @escaping @Sendable () -> Void) {
    self.mute = mute
    self.stop = stop
  }

  func remove() {
    mute.mute()
    stop()
  }
}

/// A closure of the app that is not Sendable. Safe to carry about because it is called on the
/// callback queue alone, and the callback queue is serial unless the app chose another.
struct AppClosure<Function>: @unchecked Sendable {
  let call: Function
}
