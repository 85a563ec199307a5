// Defines the access policies for databases without configured rules.

public import RealtimeModel

/// The policy of the emulator suite without rules: every caller may do everything.
public struct EmulatorPolicy: AccessPolicy {
  /// Creates the policy.
  public init() {}

  /// Allows every operation.
  public func decide(_ caller: Caller, _ operation: AccessOperation, view: any AccessView) -> RealtimeError? {
    nil
  }

  /// True for every caller.
  public func allowsEverything(_ caller: Caller) -> Bool { true }

  /// The initial rules of the emulator suite.
  public var defaultRules: String {
    "{\n    \"rules\": {\n        \".read\": true,\n        \".write\": true\n    }\n}"
  }
}

/// The policy in production without rules: only administrators have access.
public struct ProductionPolicy: AccessPolicy {
  /// Creates the policy.
  public init() {}

  /// Allows administrators only.
  public func decide(_ caller: Caller, _ operation: AccessOperation, view: any AccessView) -> RealtimeError? {
    caller.identity == .administrator ? nil : .permissionDenied
  }

  /// True for administrators.
  public func allowsEverything(_ caller: Caller) -> Bool { caller.identity == .administrator }
}
