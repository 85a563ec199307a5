// Identifies the caller of an operation. Endpoints derive it from credentials; policies decide by it.

public import RealtimeModel

/// The caller on whose behalf an operation runs.
public struct Caller: Sendable, Equatable {
  /// The identity of a caller.
  public enum Identity: Sendable, Equatable {
    /// A service account, or the emulator's `owner`: not subject to rules.
    case administrator
    /// A signed-in user, with the claims of the verified token.
    case user(id: String, claims: Node)
    /// A caller without credentials.
    case anonymous
  }

  /// The identity of the caller.
  public var identity: Identity

  /// Creates a caller.
  public init(_ identity: Identity) { self.identity = identity }

  /// A service account, or the emulator's `owner`.
  public static let administrator = Caller(.administrator)
  /// A caller without credentials.
  public static let anonymous = Caller(.anonymous)
}
