// The error of an Identity operation, in the terms of the Identity Toolkit API. Client SDKs compare the message, so its
// text is part of the protocol: a bare code, or a code and a detail separated by " : ".

/// An error that a caller of an Identity operation receives.
package struct IdentityError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The HTTP status.
  package var httpStatus: Int
  /// The canonical name of the status; nil for a business error, which has none.
  package var status: String?
  /// The code, with a detail after " : " if there is one.
  package var message: String
  /// The reason in the `errors` member of the response.
  package var reason: String
  /// The header that caused an authentication error; nil for other errors.
  package var location: String?
  /// The message in the `errors` member, if it differs from ``message``.
  package var detail: String?

  /// Creates an error.
  package init(
    _ httpStatus: Int, _ status: String?, _ message: String, reason: String, location: String? = nil,
    detail: String? = nil
  ) {
    self.httpStatus = httpStatus
    self.status = status
    self.message = message
    self.reason = reason
    self.location = location
    self.detail = detail
  }

  /// A business error: HTTP 400 without a canonical status.
  package static func rejected(_ code: String, _ detail: String? = nil) -> IdentityError {
    IdentityError(400, nil, detail.map { "\(code) : \($0)" } ?? code, reason: "invalid")
  }

  /// A body that does not have the form that the operation requires.
  package static func invalidBody(_ message: String, reason: String = "invalid") -> IdentityError {
    IdentityError(
      400, "INVALID_ARGUMENT", "Invalid JSON payload received. \(message)", reason: reason)
  }

  /// An operation or an option of it that this server does not implement.
  package static func notImplemented(_ message: String) -> IdentityError {
    IdentityError(501, "NOT_IMPLEMENTED", message, reason: "unimplemented")
  }

  /// A path that the server does not serve.
  package static let notFound = IdentityError(404, "NOT_FOUND", "Not Found", reason: "notFound")

  /// A failure of the server itself.
  package static func unavailable(_ message: String) -> IdentityError {
    IdentityError(503, "UNAVAILABLE", message, reason: "backendError")
  }

  /// The message.
  package var description: String { message }
}
