// The policies that hold while no rules are loaded.

public import RealtimeModel

/// The emulator suite's policy without rules: everyone may do everything.
public struct EmulatorPolicy: AccessPolicy {
  /// Makes the policy.
  public init() {}

  /// Allows.
  public func decide(_ caller: Caller, _ operation: AccessOperation, view: any AccessView) -> RealtimeError? {
    nil
  }

  /// Everyone.
  public func allowsEverything(_ caller: Caller) -> Bool { true }

  /// The rules that the emulator suite begins with.
  public var defaultRules: String {
    "{\n    \"rules\": {\n        \".read\": true,\n        \".write\": true\n    }\n}"
  }
}

/// Production without rules: administrators may do everything, all others nothing.
public struct ProductionPolicy: AccessPolicy {
  /// Makes the policy.
  public init() {}

  /// Allows administrators only.
  public func decide(_ caller: Caller, _ operation: AccessOperation, view: any AccessView) -> RealtimeError? {
    caller.identity == .administrator ? nil : .permissionDenied
  }

  /// Administrators.
  public func allowsEverything(_ caller: Caller) -> Bool { caller.identity == .administrator }
}
