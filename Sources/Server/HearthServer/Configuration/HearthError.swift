// Why a server does not start, in words that say what to do about it.

/// A failure to configure or start a server.
public struct HearthError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What a person reads: what is wrong, and what to change.
  public var description: String

  /// Makes an error.
  public init(_ description: String) {
    self.description = description
  }
}
