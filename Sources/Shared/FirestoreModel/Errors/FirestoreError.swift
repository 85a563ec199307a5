// The error that every part of Cloud Firestore speaks: a status code and the product's message.

/// An error of Cloud Firestore: the canonical code and the message that the caller sees.
public struct FirestoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The canonical status code.
  public var code: StatusCode
  /// What is wrong, in the product's words where they are known.
  public var message: String
  /// The parts of a request that are wrong, where what wrote them wants to know: what JSON could not be read as.
  public var fieldViolations: [FieldViolation] = []
  /// A constant that names the reason for programs; empty where the code says enough.
  public var reason = ""

  /// A part of a request that is wrong.
  public struct FieldViolation: Hashable, Sendable {
    /// The path of the message that holds it; empty for the request itself.
    public var field: String
    /// What is wrong with it.
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

  /// The request can never succeed as it is.
  public static func invalidArgument(_ message: String) -> FirestoreError {
    FirestoreError(.invalidArgument, message)
  }
  /// The system is not in the state that the request needs.
  public static func failedPrecondition(_ message: String) -> FirestoreError {
    FirestoreError(.failedPrecondition, message)
  }
  /// What was asked for does not exist.
  public static func notFound(_ message: String) -> FirestoreError { FirestoreError(.notFound, message) }
  /// What should be created exists.
  public static func alreadyExists(_ message: String) -> FirestoreError {
    FirestoreError(.alreadyExists, message)
  }
  /// Contention: try the whole transaction again.
  public static func aborted(_ message: String) -> FirestoreError { FirestoreError(.aborted, message) }
  /// The caller may not.
  public static func permissionDenied(_ message: String) -> FirestoreError {
    FirestoreError(.permissionDenied, message)
  }
  /// The caller is not known.
  public static func unauthenticated(_ message: String) -> FirestoreError {
    FirestoreError(.unauthenticated, message)
  }
  /// A limit is used up.
  public static func resourceExhausted(_ message: String) -> FirestoreError {
    FirestoreError(.resourceExhausted, message)
  }
  /// Not able to answer now.
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

  /// A document has more index entries than it may have.
  public static func indexEntryLimit(_ limit: Int) -> FirestoreError {
    var error = FirestoreError.invalidArgument(
      "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED: the document has more than \(limit) index entries.")
    error.reason = "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED"
    return error
  }

  /// Code and message in one line.
  public var description: String { "\(code.name): \(message)" }
}
