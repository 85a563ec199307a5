// The policies that hold while no rules are loaded.

import FirestoreModel

/// The emulator suite's policy without rules: everyone may do everything.
public struct EmulatorPolicy: AccessPolicy {
  /// Makes the policy.
  public init() {}

  /// Allows.
  public func decide(
    _ caller: Caller, _ operation: AccessOperation, before: StoredDocument?, after: StoredDocument?,
    view: any AccessView
  ) -> AccessDecision { .allowed }

  /// Everyone.
  public func allowsEverything(_ caller: Caller) -> Bool { true }
}

/// Production without rules: administrators may, users may not, and who shows no credentials is told so.
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

  /// Administrators.
  public func allowsEverything(_ caller: Caller) -> Bool { caller.identity == .administrator }
}
