// The policies that apply while no rules are loaded.

import FirestoreModel

/// The emulator's policy without rules: every caller may do everything.
public struct EmulatorPolicy: AccessPolicy {
  /// Makes the policy.
  public init() {}

  /// Allows.
  public func decide(
    _ caller: Caller, _ operation: AccessOperation, before: StoredDocument?, after: StoredDocument?,
    view: any AccessView
  ) -> AccessDecision { .allowed }

  /// Returns true for every caller.
  public func allowsEverything(_ caller: Caller) -> Bool { true }
}

/// The production policy without rules: administrators are allowed, users are denied, and callers without
/// credentials get UNAUTHENTICATED.
public struct ProductionPolicy: AccessPolicy {
  /// Makes the policy.
  public init() {}

  /// Allows administrators only.
  public func decide(
    _ caller: Caller, _ operation: AccessOperation, before: StoredDocument?, after: StoredDocument?,
    view: any AccessView
  ) -> AccessDecision {
    switch caller.identity {
    case .administrator: .allowed
    case .user: .denied
    case .anonymous:
      AccessDecision(
        denial: .unauthenticated(
          "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie "
            + "or other valid authentication credential."))
    }
  }

  /// Returns true for administrators.
  public func allowsEverything(_ caller: Caller) -> Bool { caller.identity == .administrator }
}
