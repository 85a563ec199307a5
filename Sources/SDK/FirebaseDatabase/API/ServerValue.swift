// Server values, which the server computes when it applies a write.

public import Foundation

/// Placeholders for values that the server fills in when it stores a write.
open class ServerValue: NSObject {
  /// Stands for the server's time in milliseconds since 1970.
  @discardableResult
  open class func timestamp() -> [AnyHashable: Any] {
    [".sv": "timestamp"]
  }

  /// Stands for the stored number plus `delta`. A location without a number counts as zero.
  @discardableResult
  open class func increment(_ delta: NSNumber) -> [AnyHashable: Any] {
    [".sv": ["increment": delta]]
  }
}
