/// An error of a store. It is a struct and not an enum, so that a new kind of error does not break callers.
public struct StoreError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kind of failure, for matching.
  public enum Code: String, Sendable {
    /// A row that the transaction read has changed since: read again and retry.
    case conflict
    /// The version is below the history window.
    case versionTooOld
    /// The version is above the newest durable version.
    case versionInFuture
    /// A key, value, commit or name is larger than the contract allows.
    case limitExceeded
    /// The store cannot write now (failed sync, full disk, closing). The outcome of the call is unknown.
    case unavailable
    /// Another process has locked the data directory.
    case locked
    /// The clock is too far ahead of the stored versions.
    case clockAhead
    /// The data on disk does not have this store's format.
    case corrupted
  }

  /// The kind of failure.
  public var code: Code
  /// The message for operators: the cause, where it occurred, and the permitted values.
  public var message: String

  /// Makes an error.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// A row that the transaction read has changed since.
  public static let conflict = StoreError(.conflict, "a row that the transaction read has changed since")
  /// A read or resume below the history window.
  public static let versionTooOld = StoreError(.versionTooOld, "the version lies below the history window")
  /// A read above the newest durable version.
  public static let versionInFuture = StoreError(.versionInFuture, "the version lies above the newest commit")
  /// A key, value, commit or name larger than the contract allows.
  public static func limitExceeded(_ message: String) -> StoreError { StoreError(.limitExceeded, message) }
  /// The store cannot write now.
  public static func unavailable(_ message: String) -> StoreError { StoreError(.unavailable, message) }

  /// The kind and the message.
  public var description: String { "\(code.rawValue): \(message)" }
}
