// Bridges `AuthErrorCode` to `NSError`. On Apple's platforms the Objective-C runtime bridges enums that are
// errors. On other platforms this extension implements the compiler's bridging protocol.

public import Foundation

extension AuthErrorCode: CustomNSError {
  /// The domain of authentication errors.
  public static var errorDomain: String { AuthErrorDomain }

  /// The raw value.
  public var errorCode: Int { rawValue }

  /// The code's name and message.
  public var errorUserInfo: [String: Any] {
    [AuthErrorUserInfoNameKey: name, NSLocalizedDescriptionKey: message]
  }
}

extension AuthErrorCode {
  /// The code of an error of this library; nil for other errors.
  init?(of error: any Error) {
    let object = error as NSError
    guard object.domain == AuthErrorDomain else { return nil }
    self.init(rawValue: object.code)
  }

  /// Allows `switch` and `catch` to match a code against any error.
  public static func ~= (match: AuthErrorCode, error: any Error) -> Bool {
    AuthErrorCode(of: error) == match
  }
}

#if !canImport(ObjectiveC)
  extension AuthErrorCode: _ObjectiveCBridgeable {
    /// The error object of this code.
    public func _bridgeToObjectiveC() -> NSError {
      NSError(domain: AuthErrorDomain, code: rawValue, userInfo: errorUserInfo)
    }

    /// Reads the code of an error object. An unknown code becomes `internalError`.
    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout AuthErrorCode?) {
      result = AuthErrorCode(of: source) ?? .internalError
    }

    /// Reads the code of an error object of this library's domain.
    public static func _conditionallyBridgeFromObjectiveC(
      _ source: NSError, result: inout AuthErrorCode?
    ) -> Bool {
      result = AuthErrorCode(of: source)
      return result != nil
    }

    /// Reads the code of an error object. An unknown code becomes `internalError`.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> AuthErrorCode {
      source.flatMap { AuthErrorCode(of: $0) } ?? .internalError
    }
  }
#endif
