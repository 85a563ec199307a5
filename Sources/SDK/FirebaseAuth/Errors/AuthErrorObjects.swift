// Makes the error objects. They are NSErrors, because on Linux `as? NSError` fails for other Swift errors.
//
// Invariant: every error that the app receives has the domain `AuthErrorDomain` and a code of
// `AuthErrorCode`.

import Foundation

extension AuthErrorCode {
  /// Creates the error object of this code.
  ///
  /// - Parameters:
  ///   - text: the message; nil or empty for the code's default message.
  ///   - underlying: the cause.
  ///   - details: further entries of `userInfo`.
  func error(
    _ text: String? = nil, underlying: (any Error)? = nil, details: [String: Any] = [:]
  ) -> NSError {
    var info = details
    info[AuthErrorUserInfoNameKey] = name
    info[NSLocalizedDescriptionKey] = text.flatMap { $0.isEmpty ? nil : $0 } ?? message
    if let underlying { info[NSUnderlyingErrorKey] = underlying as NSError }
    return NSError(domain: AuthErrorDomain, code: rawValue, userInfo: info)
  }
}

/// The causes of an `internalError`, numbered as in Google's SDK.
enum AuthInternalError: Int {
  case requestEncoding = 1
  case unexpectedErrorResponse = 3
  case unexpectedResponse = 4
  case responseDecoding = 5

  static let domain = "FIRAuthInternalErrorDomain"
  static let responseKey = "FIRAuthErrorUserInfoDeserializedResponseKey"

  /// Creates the error object for the app, with this cause as its underlying error.
  ///
  /// - Parameters:
  ///   - response: the server's response as a string; the error contains at most its first kilobyte.
  ///   - cause: the underlying error, such as an error of the JSON decoder.
  func error(response: String? = nil, cause: (any Error)? = nil) -> NSError {
    var info: [String: Any] = [:]
    if let response { info[Self.responseKey] = String(response.prefix(1024)) }
    if let cause { info[NSUnderlyingErrorKey] = cause as NSError }
    return AuthErrorCode.internalError.error(
      underlying: NSError(domain: Self.domain, code: rawValue, userInfo: info))
  }
}

/// Converts any error to an error of this library's domain.
func authError(_ error: any Error) -> NSError {
  let object = error as NSError
  if object.domain == AuthErrorDomain { return object }
  return AuthErrorCode.internalError.error(underlying: error)
}
