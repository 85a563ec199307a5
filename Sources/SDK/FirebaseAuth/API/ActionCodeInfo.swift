// Information about an action code: its operation and the e-mail addresses that it affects.

public import Foundation

/// The operation that an action code allows.
public enum ActionCodeOperation: Int, Sendable {
  /// The server sent an operation that this library does not know.
  case unknown = 0
  /// Sets a new password.
  case passwordReset = 1
  /// Verifies the e-mail address.
  case verifyEmail = 2
  /// Restores the previous e-mail address.
  case recoverEmail = 3
  /// Signs in.
  case emailLink = 4
  /// Verifies a new e-mail address and sets it in the account.
  case verifyAndChangeEmail = 5
  /// Removes a second factor that was added.
  case revertSecondFactorAddition = 6

  /// The operation for a request type from the server.
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

  /// The operation for the parameter `mode` of a link.
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

/// The operation of an action code, and the e-mail addresses that it affects.
open class ActionCodeInfo: NSObject, @unchecked Sendable {
  // SAFETY: all properties are constants.
  /// The operation.
  public let operation: ActionCodeOperation
  /// The e-mail address of the account. If the operation changes the address, this is the new one.
  public let email: String
  /// The address before the change; nil if the operation does not change the address.
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
