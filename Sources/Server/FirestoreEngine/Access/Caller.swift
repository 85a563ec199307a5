// The caller of an operation. Endpoints derive it from credentials; policies decide about it.

public import FirestoreModel

/// The caller on whose behalf an operation runs.
public struct Caller: Hashable, Sendable {
  /// The identity of a caller.
  public enum Identity: Hashable, Sendable {
    /// A service account, or the emulator's `owner` token. Security rules do not apply.
    case administrator
    /// A signed-in user, with the claims of the verified ID token.
    case user(id: String, claims: MapValue)
    /// A caller without credentials.
    case anonymous
  }

  /// The caller's identity.
  public var identity: Identity

  /// Makes a caller.
  public init(_ identity: Identity) { self.identity = identity }

  /// A service account, or the emulator's `owner`.
  public static let administrator = Caller(.administrator)
  /// A caller without credentials.
  public static let anonymous = Caller(.anonymous)
}
