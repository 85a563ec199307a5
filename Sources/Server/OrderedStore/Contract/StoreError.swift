/// What can go wrong in a store. A struct with static members, so that cases can be added without breaking callers.
public struct StoreError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kind of failure, for matching.
  public enum Code: String, Sendable {
    /// Something that was read has changed since: read again and retry.
    case conflict
    /// The version lies below the history window.
    case versionTooOld
    /// The version lies above the newest durable one.
    case versionInFuture
    /// A key, value, commit or name is larger than the contract allows.
    case limitExceeded
    /// The store cannot write now (a failed sync, a full disk, closing); what was asked may or may not have happened.
    case unavailable
    /// Another process holds the data directory.
    case locked
    /// What is on disk cannot be read as this store's format.
    case corrupted
  }

  /// The kind of failure.
  public var code: Code
  /// What happened, where, and what is allowed.
  public var message: String

  /// Makes an error.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Something that was read has changed since.
  public static let conflict = StoreError(.conflict, "what the transaction read has changed since")
  /// A read or resume below the history window.
  public static let versionTooOld = StoreError(.versionTooOld, "the version lies below the history window")
  /// A read above the newest durable version.
  public static let versionInFuture = StoreError(.versionInFuture, "the version lies above the newest commit")
  /// Something larger than the contract allows.
  public static func limitExceeded(_ message: String) -> StoreError { StoreError(.limitExceeded, message) }
  /// The store cannot write now.
  public static func unavailable(_ message: String) -> StoreError { StoreError(.unavailable, message) }

  /// The kind and the message.
  public var description: String { "\(code.rawValue): \(message)" }
}
