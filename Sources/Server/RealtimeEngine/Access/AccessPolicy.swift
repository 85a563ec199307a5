// The one point at which access is decided: in the sequencer, on the state that the operation itself sees.
//
// Invariant: nothing leaves the engine and nothing changes before `decide` has allowed exactly that.

public import RealtimeModel

/// What someone is about to do.
public enum AccessOperation: Sendable {
  /// Read or listen to a location through a query; ``RealtimeModel/QuerySpec/default`` for all of it.
  case read(Path, QuerySpec)
  /// Replace the values at these locations, in this order; deferred values are resolved already.
  case write([(path: Path, value: Node)])
}

/// What a policy may look at while it decides.
public protocol AccessView {
  /// The value at a location before the operation.
  /// - Throws: what the store throws.
  func node(at path: Path) throws -> Node
  /// The value at a location as it will be after the write; for reads the same as ``node(at:)``.
  /// - Throws: what the store throws.
  func nodeAfter(at path: Path) throws -> Node
  /// The operation's instant in milliseconds since the Unix epoch; equal to its server timestamps.
  var now: Int64 { get }
}

/// Decides who may do what. Called synchronously in the sequencer: it must be quick, must not block, and must be
/// deterministic.
public protocol AccessPolicy: Sendable {
  /// Decides one operation.
  ///
  /// - Returns: nil to allow; else the error that the caller gets.
  /// - Throws: what `view` throws.
  func decide(_ caller: Caller, _ operation: AccessOperation, view: any AccessView) throws -> RealtimeError?

  /// Whether `decide` allows this caller everything, so that the engine need not prepare its arguments.
  func allowsEverything(_ caller: Caller) -> Bool

  /// The rules file that says what the policy allows, shown while a database has none of its own.
  var defaultRules: String { get }
}

extension AccessPolicy {
  /// By default nobody is above the policy.
  public func allowsEverything(_ caller: Caller) -> Bool { false }
  /// By default the rules by which nobody may anything.
  public var defaultRules: String {
    "{\n    \"rules\": {\n        \".read\": false,\n        \".write\": false\n    }\n}"
  }
}
