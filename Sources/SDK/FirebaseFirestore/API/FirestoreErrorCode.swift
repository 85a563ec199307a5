// The error codes of Firestore. Errors are NSErrors of one domain, and their codes are those of gRPC.

import FirebaseCore
import FirestoreModel
public import Foundation
import Locking

/// The domain of every error that Firestore reports.
public let FirestoreErrorDomain = "FIRFirestoreErrorDomain"

/// The pointer through which a transaction's block returns its error. Foundation on Linux does not declare
/// this type.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?

/// An error of Firestore: a code and a message from the server or the SDK.
///
/// Callbacks and throwing methods deliver `NSError` objects. An app can match them with `error as?
/// FirestoreErrorCode` or `catch FirestoreErrorCode.notFound`.
public struct FirestoreErrorCode: Error, CustomNSError, Hashable, Sendable {
  /// The codes, with the numbers of gRPC.
  public enum Code: Int, Sendable {
    /// No error.
    case OK = 0
    /// The operation was cancelled.
    case cancelled = 1
    /// An unknown error.
    case unknown = 2
    /// An argument of the request is invalid, whatever the state of the system.
    case invalidArgument = 3
    /// The deadline passed before the operation was complete.
    case deadlineExceeded = 4
    /// The requested entity does not exist.
    case notFound = 5
    /// The entity to create already exists.
    case alreadyExists = 6
    /// The user does not have permission for the operation.
    case permissionDenied = 7
    /// A quota is exhausted.
    case resourceExhausted = 8
    /// The system is not in the state that the operation requires.
    case failedPrecondition = 9
    /// The operation was aborted, typically because of a conflict with another transaction.
    case aborted = 10
    /// The operation was attempted beyond the valid range.
    case outOfRange = 11
    /// The operation is not supported.
    case unimplemented = 12
    /// An internal error: an invariant is broken.
    case `internal` = 13
    /// The service is currently unavailable.
    case unavailable = 14
    /// Data is lost or damaged.
    case dataLoss = 15
    /// The request has no valid credentials.
    case unauthenticated = 16
  }

  // Sendable like NSError, because it is immutable.
  private let error: NSError

  /// Makes an error with a code.
  public init(_ code: Code, userInfo: [String: Any] = [:]) {
    error = NSError(domain: FirestoreErrorDomain, code: code.rawValue, userInfo: userInfo)
  }

  /// Wraps an error object of Firestore's domain.
  public init(_nsError error: NSError) { self.error = error }

  /// The code.
  public var code: Code { Code(rawValue: error.code) ?? .unknown }
  /// The error's `userInfo`.
  public var userInfo: [String: Any] { error.userInfo }
  /// The code's number.
  public var errorCode: Int { error.code }
  /// The error's `userInfo`.
  public var errorUserInfo: [String: Any] { error.userInfo }
  /// The error message.
  public var localizedDescription: String { error.localizedDescription }
  /// The error domain of Firestore.
  public static var errorDomain: String { FirestoreErrorDomain }

  /// Whether both errors have the same code.
  public static func == (a: FirestoreErrorCode, b: FirestoreErrorCode) -> Bool {
    a.error.code == b.error.code && a.error.domain == b.error.domain
  }

  /// Hashes the code.
  public func hash(into hasher: inout Hasher) { hasher.combine(error.code) }

  var object: NSError { error }

  /// No error.
  public static var OK: Code { .OK }
  /// The operation was cancelled.
  public static var cancelled: Code { .cancelled }
  /// An unknown error.
  public static var unknown: Code { .unknown }
  /// An argument of the request is invalid, whatever the state of the system.
  public static var invalidArgument: Code { .invalidArgument }
  /// The deadline passed before the operation was complete.
  public static var deadlineExceeded: Code { .deadlineExceeded }
  /// The requested entity does not exist.
  public static var notFound: Code { .notFound }
  /// The entity to create already exists.
  public static var alreadyExists: Code { .alreadyExists }
  /// The user does not have permission for the operation.
  public static var permissionDenied: Code { .permissionDenied }
  /// A quota is exhausted.
  public static var resourceExhausted: Code { .resourceExhausted }
  /// The system is not in the state that the operation requires.
  public static var failedPrecondition: Code { .failedPrecondition }
  /// The operation was aborted, typically because of a conflict with another transaction.
  public static var aborted: Code { .aborted }
  /// The operation was attempted beyond the valid range.
  public static var outOfRange: Code { .outOfRange }
  /// The operation is not supported.
  public static var unimplemented: Code { .unimplemented }
  /// An internal error: an invariant is broken.
  public static var `internal`: Code { .internal }
  /// The service is currently unavailable.
  public static var unavailable: Code { .unavailable }
  /// Data is lost or damaged.
  public static var dataLoss: Code { .dataLoss }
  /// The request has no valid credentials.
  public static var unauthenticated: Code { .unauthenticated }
}

extension FirestoreErrorCode.Code {
  /// Allows `switch` and `catch` to match a code against any error.
  public static func ~= (match: FirestoreErrorCode.Code, error: any Error) -> Bool {
    let object = error as NSError
    return object.domain == FirestoreErrorDomain && object.code == match.rawValue
  }
}

#if !canImport(ObjectiveC)
  extension FirestoreErrorCode: _ObjectiveCBridgeable {
    /// The error object.
    public func _bridgeToObjectiveC() -> NSError { error }

    /// Wraps an error object of any domain.
    public static func _forceBridgeFromObjectiveC(
      _ source: NSError, result: inout FirestoreErrorCode?
    ) {
      result = FirestoreErrorCode(_nsError: source)
    }

    /// Wraps an error object of Firestore's domain.
    public static func _conditionallyBridgeFromObjectiveC(
      _ source: NSError, result: inout FirestoreErrorCode?
    ) -> Bool {
      guard source.domain == FirestoreErrorDomain else { return false }
      result = FirestoreErrorCode(_nsError: source)
      return true
    }

    /// Wraps an error object; nil becomes an error with the code `unknown`.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> FirestoreErrorCode {
      source.map { FirestoreErrorCode(_nsError: $0) } ?? FirestoreErrorCode(.unknown)
    }
  }
#endif

extension FirestoreError {
  /// The error object that apps receive.
  var object: NSError {
    NSError(
      domain: FirestoreErrorDomain, code: Int(code.rawValue),
      userInfo: [NSLocalizedDescriptionKey: message])
  }
}

/// Stops the program because of an invalid argument, with a message.
func failInvalidArgument(_ reason: String) -> Never { usageException("FIRInvalidArgumentException", reason) }

/// Stops the program because of a call at the wrong time, with a message.
func failIllegalState(_ reason: String) -> Never { usageException("FIRIllegalStateException", reason) }

/// Writes the SDK's log messages.
enum FirestoreLog {
  static func error(_ code: String, _ message: String) {
    FirebaseLogger.log(.error, service: "Firestore", "[\(code)] \(message)")
  }

  static func warning(_ code: String, _ message: String) {
    FirebaseLogger.log(.warning, service: "Firestore", "[\(code)] \(message)")
  }

  /// Logs a message if `Firestore.enableLogging(true)` was called.
  static func debug(_ message: @autoclosure () -> String) {
    FirebaseLogger.log(.debug, service: "Firestore", message())
  }
}

/// Converts an app's completion to a completion for the client, which has typed errors.
func withTypedErrors(
  _ completion: (@Sendable ((any Error)?) -> Void)?
) -> (@Sendable (FirestoreError?) -> Void)? {
  guard let completion else { return nil }
  return { error in completion(error?.object) }
}
