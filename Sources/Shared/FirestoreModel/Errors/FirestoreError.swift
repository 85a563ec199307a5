// The error type of Cloud Firestore: a status code and a message.

/// An error of Cloud Firestore: the canonical code and the message that the caller sees.
public struct FirestoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The canonical status code.
  public var code: StatusCode
  /// The description, in Cloud Firestore's words where they are known.
  public var message: String
  /// The invalid fields of a request. Only errors of JSON requests contain them.
  public var fieldViolations: [FieldViolation] = []
  /// A machine-readable reason; empty if the code suffices.
  public var reason = ""

  /// An invalid field of a request.
  public struct FieldViolation: Hashable, Sendable {
    /// The path of the message that contains the field; empty for the request itself.
    public var field: String
    /// The description of the error.
    public var description: String

    /// Makes a violation.
    public init(field: String, description: String) {
      self.field = field
      self.description = description
    }
  }

  /// Makes an error.
  public init(_ code: StatusCode, _ message: String) {
    self.code = code
    self.message = message
  }

  /// The request is invalid, whatever the state of the system.
  public static func invalidArgument(_ message: String) -> FirestoreError {
    FirestoreError(.invalidArgument, message)
  }
  /// The system is not in the state that the request needs.
  public static func failedPrecondition(_ message: String) -> FirestoreError {
    FirestoreError(.failedPrecondition, message)
  }
  /// The requested entity does not exist.
  public static func notFound(_ message: String) -> FirestoreError { FirestoreError(.notFound, message) }
  /// The entity to create exists already.
  public static func alreadyExists(_ message: String) -> FirestoreError {
    FirestoreError(.alreadyExists, message)
  }
  /// The call conflicts with another; the complete transaction may be retried.
  public static func aborted(_ message: String) -> FirestoreError { FirestoreError(.aborted, message) }
  /// The caller is known but not permitted.
  public static func permissionDenied(_ message: String) -> FirestoreError {
    FirestoreError(.permissionDenied, message)
  }
  /// The caller has no valid credentials.
  public static func unauthenticated(_ message: String) -> FirestoreError {
    FirestoreError(.unauthenticated, message)
  }
  /// A quota or limit is exhausted.
  public static func resourceExhausted(_ message: String) -> FirestoreError {
    FirestoreError(.resourceExhausted, message)
  }
  /// The service is temporarily unavailable; the call may be retried.
  public static func unavailable(_ message: String) -> FirestoreError {
    FirestoreError(.unavailable, message)
  }
  /// Not supported here.
  public static func unimplemented(_ message: String) -> FirestoreError {
    FirestoreError(.unimplemented, message)
  }
  /// A broken invariant.
  public static func internalError(_ message: String) -> FirestoreError {
    FirestoreError(.internalError, message)
  }

  /// A document has more index entries than the limit.
  public static func indexEntryLimit(_ limit: Int) -> FirestoreError {
    var error = FirestoreError.invalidArgument(
      "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED: the document has more than \(limit) index entries.")
    error.reason = "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED"
    return error
  }

  /// Code and message in one line.
  public var description: String { "\(code.name): \(message)" }
}
