// The Firebase configuration of the process, which is independent of apps.

public import Foundation
import Locking

/// The settings that all apps of the process share.
open class FirebaseConfiguration: NSObject, @unchecked Sendable {
  // Safe to share: the only state is behind a lock.
  private static let instance = FirebaseConfiguration()

  private let level = Guarded(FirebaseLoggerLevel.notice)

  /// The configuration of the process.
  open class var shared: FirebaseConfiguration { instance }

  /// Sets the minimum level of messages that Firebase products log to standard error.
  open func setLoggerLevel(_ loggerLevel: FirebaseLoggerLevel) {
    level.withLock { $0 = loggerLevel }
  }

  /// The minimum level of messages that Firebase products log; `.notice` by default.
  @discardableResult
  open func loggerLevel() -> FirebaseLoggerLevel {
    level.withLock { $0 }
  }
}
