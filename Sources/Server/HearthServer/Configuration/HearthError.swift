// The error of a server that cannot start, with advice on what to change.

/// A failure to configure or start a server.
public struct HearthError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The message: the problem and what to change.
  public var description: String

  /// Makes an error.
  public init(_ description: String) {
    self.description = description
  }
}
