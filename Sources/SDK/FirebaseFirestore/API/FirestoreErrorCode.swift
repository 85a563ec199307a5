// The error codes of Firestore. Errors are NSErrors of one domain, with the codes of gRPC.

import FirebaseCore
import FirestoreModel
public import Foundation
import Locking

/// The domain of every error that Firestore reports.
public let FirestoreErrorDomain = "FIRFirestoreErrorDomain"

/// The pointer through which a transaction's block returns its error. Foundation on Linux does not declare
/// this type.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?

/// An error of Firestore: a code and a message of the server or the SDK.
///
/// Callbacks and throwing methods deliver `NSError` objects; `error as? FirestoreErrorCode`, and
/// `catch FirestoreErrorCode.notFound`, work on them.
public struct FirestoreErrorCode: Error, CustomNSError, Hashable, Sendable {
  /// The codes, numbered as gRPC numbers them.
  public enum Code: Int, Sendable {
    /// No error.
    case OK = 0
    /// The operation was cancelled.
    case cancelled = 1
    /// Nothing more is known.
    case unknown = 2
    /// The request can never succeed as it is.
    case invalidArgument = 3
    /// The time was up first.
    case deadlineExceeded = 4
    /// The requested entity does not exist.
    case notFound = 5
    /// The entity to create exists already.
    case alreadyExists = 6
    /// The user may not.
    case permissionDenied = 7
    /// A quota is used up.
    case resourceExhausted = 8
    /// The system is not in the state that the request needs.
    case failedPrecondition = 9
    /// Others changed the same data at the same time.
    case aborted = 10
    /// Beyond the valid range.
    case outOfRange = 11
    /// Not supported.
    case unimplemented = 12
    /// An invariant is broken.
    case `internal` = 13
    /// The server cannot be reached now.
    case unavailable = 14
    /// Data is lost or damaged.
    case dataLoss = 15
    /// Nobody is signed in.
    case unauthenticated = 16
  }

  // Sendable like NSError, because it is immutable.
  private let error: NSError

  /// Makes an error of a code.
  public init(_ code: Code, userInfo: [String: Any] = [:]) {
    error = NSError(domain: FirestoreErrorDomain, code: code.rawValue, userInfo: userInfo)
  }

  /// Takes over an error object of Firestore's domain.
  public init(_nsError error: NSError) { self.error = error }

  /// The code.
  public var code: Code { Code(rawValue: error.code) ?? .unknown }
  /// The error's `userInfo`.
  public var userInfo: [String: Any] { error.userInfo }
  /// The code's number.
  public var errorCode: Int { error.code }
  /// The error's `userInfo`.
  public var errorUserInfo: [String: Any] { error.userInfo }
  /// The message.
  public var localizedDescription: String { error.localizedDescription }
  /// Firestore's domain.
  public static var errorDomain: String { FirestoreErrorDomain }

  /// Whether both have the same code.
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
  /// Nothing more is known.
  public static var unknown: Code { .unknown }
  /// The request can never succeed as it is.
  public static var invalidArgument: Code { .invalidArgument }
  /// The time was up first.
  public static var deadlineExceeded: Code { .deadlineExceeded }
  /// The requested entity does not exist.
  public static var notFound: Code { .notFound }
  /// The entity to create exists already.
  public static var alreadyExists: Code { .alreadyExists }
  /// The user may not.
  public static var permissionDenied: Code { .permissionDenied }
  /// A quota is used up.
  public static var resourceExhausted: Code { .resourceExhausted }
  /// The system is not in the state that the request needs.
  public static var failedPrecondition: Code { .failedPrecondition }
  /// Others changed the same data at the same time.
  public static var aborted: Code { .aborted }
  /// Beyond the valid range.
  public static var outOfRange: Code { .outOfRange }
  /// Not supported.
  public static var unimplemented: Code { .unimplemented }
  /// An invariant is broken.
  public static var `internal`: Code { .internal }
  /// The server cannot be reached now.
  public static var unavailable: Code { .unavailable }
  /// Data is lost or damaged.
  public static var dataLoss: Code { .dataLoss }
  /// Nobody is signed in.
  public static var unauthenticated: Code { .unauthenticated }
}

extension FirestoreErrorCode.Code {
  /// Lets `switch` and `catch` match a code against any error.
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

    /// Takes over an error object of Firestore's domain.
    public static func _conditionallyBridgeFromObjectiveC(
      _ source: NSError, result: inout FirestoreErrorCode?
    ) -> Bool {
      guard source.domain == FirestoreErrorDomain else { return false }
      result = FirestoreErrorCode(_nsError: source)
      return true
    }

    /// Wraps an error object, or makes one with the code `unknown`.
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

/// Stops the program because of a mistake in it, naming the mistake.
func failInvalidArgument(_ reason: String) -> Never { usageException("FIRInvalidArgumentException", reason) }

/// Stops the program because of a call at the wrong time.
func failIllegalState(_ reason: String) -> Never { usageException("FIRIllegalStateException", reason) }

/// The SDK's own messages.
enum FirestoreLog {
  static func error(_ code: String, _ message: String) {
    FirebaseLogger.log(.error, service: "Firestore", "[\(code)] \(message)")
  }

  static func warning(_ code: String, _ message: String) {
    FirebaseLogger.log(.warning, service: "Firestore", "[\(code)] \(message)")
  }

  /// The log of `Firestore.enableLogging(true)`.
  static func debug(_ message: @autoclosure () -> String) {
    FirebaseLogger.log(.debug, service: "Firestore", message())
  }
}

/// An app's completion as the client calls it.
func reporting(
  _ completion: (@Sendable ((any Error)?) -> Void)?
) -> (@Sendable (FirestoreError?) -> Void)? {
  guard let completion else { return nil }
  return { error in completion(error?.object) }
}
