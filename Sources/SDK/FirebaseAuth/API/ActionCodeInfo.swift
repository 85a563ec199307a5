// The purpose of an action code.

public import Foundation

/// The operation that an action code allows.
public enum ActionCodeOperation: Int, Sendable {
  /// The server named an operation that this library does not know.
  case unknown = 0
  /// Sets a new password.
  case passwordReset = 1
  /// Verifies the e-mail address.
  case verifyEmail = 2
  /// Restores the previous e-mail address.
  case recoverEmail = 3
  /// Signs in.
  case emailLink = 4
  /// Verifies a new e-mail address and makes it the account's.
  case verifyAndChangeEmail = 5
  /// Removes a second factor that was added.
  case revertSecondFactorAddition = 6

  /// The operation of a request type of the server.
  init(requestType: String) {
    switch requestType {
    case "PASSWORD_RESET": self = .passwordReset
    case "VERIFY_EMAIL": self = .verifyEmail
    case "RECOVER_EMAIL": self = .recoverEmail
    case "EMAIL_SIGNIN": self = .emailLink
    case "VERIFY_AND_CHANGE_EMAIL": self = .verifyAndChangeEmail
    case "REVERT_SECOND_FACTOR_ADDITION": self = .revertSecondFactorAddition
    default: self = .unknown
    }
  }

  /// The operation of the parameter `mode` in a link.
  init(mode: String) {
    switch mode {
    case "resetPassword": self = .passwordReset
    case "verifyEmail": self = .verifyEmail
    case "recoverEmail": self = .recoverEmail
    case "signIn": self = .emailLink
    case "verifyAndChangeEmail": self = .verifyAndChangeEmail
    case "revertSecondFactorAddition": self = .revertSecondFactorAddition
    default: self = .unknown
    }
  }
}

/// An operation and the addresses that it concerns.
open class ActionCodeInfo: NSObject, @unchecked Sendable {
  // SAFETY: all properties are constants.
  /// The operation.
  public let operation: ActionCodeOperation
  /// The e-mail address: the new one, if the operation changes the address.
  public let email: String
  /// The address before the change; nil if the operation changes none.
  public let previousEmail: String?

  init(operation: ActionCodeOperation, email: String, newEmail: String?) {
    self.operation = operation
    if let newEmail, !newEmail.isEmpty {
      self.email = newEmail
      previousEmail = email
    } else {
      self.email = email
      previousEmail = nil
    }
    super.init()
  }
}
