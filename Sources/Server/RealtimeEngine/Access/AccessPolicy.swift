// Defines how access to data is decided. A policy decides on the same state that the operation itself sees.
//
// Invariant: the engine returns or changes data only after `decide` has allowed exactly this operation.

public import RealtimeModel

/// An operation to be allowed or denied.
public enum AccessOperation: Sendable {
  /// Read or listen to a location with a query; ``RealtimeModel/QuerySpec/default`` for the complete
  /// location.
  case read(Path, QuerySpec)
  /// Replace the values at these locations, in this order. Server values are resolved already.
  case write([(path: Path, value: Node)])
}

/// The data that a policy may read.
public protocol AccessView {
  /// The value at a location before the operation.
  ///
  /// - Throws: errors of the store.
  func node(at path: Path) throws -> Node
  /// The value at a location after the write; for reads the same as ``node(at:)``.
  ///
  /// - Throws: errors of the store.
  func nodeAfter(at path: Path) throws -> Node
  /// The time of the operation in milliseconds since the Unix epoch; equal to its server timestamps.
  var now: Int64 { get }
}

/// Decides which caller may perform which operation. The engine calls it synchronously while other operations
/// wait: it must be quick, must not block, and must be deterministic.
public protocol AccessPolicy: Sendable {
  /// Decides one operation.
  ///
  /// - Returns: nil to allow it; otherwise the error for the caller.
  /// - Throws: errors of `view`.
  func decide(_ caller: Caller, _ operation: AccessOperation, view: any AccessView) throws -> RealtimeError?

  /// Whether `decide` allows this caller everything. The engine then skips preparing its arguments.
  func allowsEverything(_ caller: Caller) -> Bool

  /// The rules file that describes the policy, shown for a database without rules.
  var defaultRules: String { get }
}

extension AccessPolicy {
  /// By default every caller is subject to the policy.
  public func allowsEverything(_ caller: Caller) -> Bool { false }
  /// By default, rules that deny all access.
  public var defaultRules: String {
    "{\n    \"rules\": {\n        \".read\": false,\n        \".write\": false\n    }\n}"
  }
}
