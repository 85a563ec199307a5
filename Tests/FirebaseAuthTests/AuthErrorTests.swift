// Tests error codes: numbers and names that apps compare, casts, and the names of the server's errors.

import Foundation
import Testing

@testable import FirebaseAuth

@Suite("Error codes") struct AuthErrorTests {
  @Test(
    "codes have the numbers and names of Google's SDK",
    arguments: [
      (AuthErrorCode.invalidCustomToken, 17000, "ERROR_INVALID_CUSTOM_TOKEN"),
      (.invalidCredential, 17004, "ERROR_INVALID_CREDENTIAL"),
      (.emailAlreadyInUse, 17007, "ERROR_EMAIL_ALREADY_IN_USE"),
      (.wrongPassword, 17009, "ERROR_WRONG_PASSWORD"), (.userNotFound, 17011, "ERROR_USER_NOT_FOUND"),
      (.requiresRecentLogin, 17014, "ERROR_REQUIRES_RECENT_LOGIN"),
      (.networkError, 17020, "ERROR_NETWORK_REQUEST_FAILED"),
      (.userTokenExpired, 17021, "ERROR_USER_TOKEN_EXPIRED"), (.weakPassword, 17026, "ERROR_WEAK_PASSWORD"),
      (.missingAppCredential, 17047, "MISSING_APP_CREDENTIAL"),
      (.secondFactorRequired, 17078, "ERROR_SECOND_FACTOR_REQUIRED"),
      (.keychainError, 17995, "ERROR_KEYCHAIN_ERROR"), (.internalError, 17999, "ERROR_INTERNAL_ERROR"),
      (.malformedJWT, 18000, "ERROR_MALFORMED_JWT"),
    ])
  func numbers(code: AuthErrorCode, number: Int, name: String) {
    #expect(code.rawValue == number && code.code == code)
    let error = code.error()
    #expect(error.domain == "FIRAuthErrorDomain" && error.code == number)
    #expect(error.userInfo[AuthErrors.userInfoNameKey] as? String == name)
    #expect(!error.localizedDescription.isEmpty)
  }

  @Test("an NSError of the domain casts to the code, in every form that apps use")
  func casts() {
    let error: any Error = AuthErrorCode.networkError.error()
    #expect(error as? AuthErrorCode == .networkError)
    #expect((error as? AuthErrorCode)?.code == .networkError)
    #expect(AuthErrorCode(rawValue: (error as NSError).code) == .networkError)
    #expect((error as NSError?)?.code == AuthErrorCode.networkError.rawValue)
    do { throw error } catch AuthErrorCode.networkError {} catch { Issue.record("no match") }
    do { throw error } catch let code as AuthErrorCode { #expect(code == .networkError) } catch {
      Issue.record("no cast")
    }
    switch error {
    case AuthErrorCode.wrongPassword: Issue.record("another code matched")
    case AuthErrorCode.networkError: break
    default: Issue.record("no match")
    }
    let other: any Error = NSError(domain: "other", code: 17020)
    #expect(other as? AuthErrorCode == nil)
    let back = AuthErrorCode.wrongPassword as NSError
    #expect(back.domain == AuthErrorDomain && back.code == 17009)
  }

  @Test("the server's message is split at the first colon, and its detail becomes the description")
  func serverNames() throws {
    let weak = try #require(
      ServerErrorNames.error(for: "WEAK_PASSWORD : Password should be: at least 6 characters"))
    #expect(weak.code == AuthErrorCode.weakPassword.rawValue)
    #expect(weak.localizedDescription == "Password should be: at least 6 characters")
    #expect(
      weak.userInfo[NSLocalizedFailureReasonErrorKey] as? String
        == "Password should be: at least 6 characters")
    #expect(ServerErrorNames.error(for: "EMAIL_EXISTS")?.code == 17007)
    #expect(ServerErrorNames.error(for: "INVALID_LOGIN_CREDENTIALS")?.code == 17004)
    #expect(ServerErrorNames.error(for: "INVALID_REFRESH_TOKEN")?.code == 17017)
    #expect(ServerErrorNames.error(for: "SOMETHING_NEW") == nil)
    #expect(ServerErrorNames.error(for: "") == nil)
    #expect(ServerErrorNames.error(for: "API key not valid.", reasons: ["keyInvalid"])?.code == 17023)
  }
}
