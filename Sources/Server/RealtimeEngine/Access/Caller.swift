// Who asks. Endpoints establish it from credentials; policies judge it.

public import RealtimeModel

/// The one on whose behalf an operation runs.
public struct Caller: Sendable, Equatable {
  /// What is known of a caller.
  public enum Identity: Sendable, Equatable {
    /// A service account, or the emulator's `owner`: above all rules.
    case administrator
    /// A signed-in user, with the claims of the verified token.
    case user(id: String, claims: Node)
    /// Nobody in particular: no credentials were presented.
    case anonymous
  }

  /// What is known of the caller.
  public var identity: Identity

  /// Makes a caller.
  public init(_ identity: Identity) { self.identity = identity }

  /// A service account, or the emulator's `owner`.
  public static let administrator = Caller(.administrator)
  /// Someone without credentials.
  public static let anonymous = Caller(.anonymous)
}
