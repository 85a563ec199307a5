// The configuration of the process, independent of apps.

public import Foundation
import Locking

/// Settings shared by all apps of the process.
open class FirebaseConfiguration: NSObject, @unchecked Sendable {
  // Safe to share: the only state is behind a lock.
  private static let instance = FirebaseConfiguration()

  private let level = Guarded(FirebaseLoggerLevel.notice)

  /// The one configuration of the process.
  open class var shared: FirebaseConfiguration { instance }

  /// Sets how much every Firebase product prints to standard error.
  open func setLoggerLevel(_ loggerLevel: FirebaseLoggerLevel) {
    level.withLock { $0 = loggerLevel }
  }

  /// How much every Firebase product prints; `.notice` unless set.
  @discardableResult
  open func loggerLevel() -> FirebaseLoggerLevel {
    level.withLock { $0 }
  }
}
