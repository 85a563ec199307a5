// The requests about second factors.

import Foundation

/// A verification code that the user received by phone.
struct PhoneVerification: Codable, Sendable {
  let sessionInfo: String
  let code: String
}

/// A one-time password of an authenticator app.
struct OneTimePasswordVerification: Codable, Sendable {
  var sessionInfo: String?
  let verificationCode: String
}

/// The tokens of a user with a second factor.
struct FactorTokensResponse: Decodable, Sendable {
  var idToken: String?
  var refreshToken: String?
}

/// Begins the enrollment of a second factor.
struct StartEnrollmentRequest: AuthRequest {
  static let service = AuthServer.Service.identityV2
  static let operation = "accounts/mfaEnrollment:start"

  struct Phone: Encodable, Sendable {
    let phoneNumber: String
  }

  struct OneTimePassword: Encodable, Sendable {}

  let idToken: String
  var phoneEnrollmentInfo: Phone?
  var totpEnrollmentInfo: OneTimePassword?

  struct Response: Decodable, Sendable {
    struct PhoneSession: Decodable, Sendable {
      var sessionInfo: String?
    }

    struct Secret: Decodable, Sendable {
      var sharedSecretKey: String?
      var verificationCodeLength: Int?
      var hashingAlgorithm: String?
      var periodSec: Int?
      var sessionInfo: String?
    }

    var phoneSessionInfo: PhoneSession?
    var totpSessionInfo: Secret?
  }
}

/// Completes the enrollment of a second factor.
struct FinalizeEnrollmentRequest: AuthRequest {
  typealias Response = FactorTokensResponse
  static let service = AuthServer.Service.identityV2
  static let operation = "accounts/mfaEnrollment:finalize"

  let idToken: String
  var displayName: String?
  var phoneVerificationInfo: PhoneVerification?
  var totpVerificationInfo: OneTimePasswordVerification?
}

/// Removes a second factor.
struct WithdrawRequest: AuthRequest {
  typealias Response = FactorTokensResponse
  static let service = AuthServer.Service.identityV2
  static let operation = "accounts/mfaEnrollment:withdraw"

  let idToken: String
  let mfaEnrollmentId: String
}

/// Sends a code to the phone that is the second factor of a sign-in.
struct StartFactorSignInRequest: AuthRequest {
  static let service = AuthServer.Service.identityV2
  static let operation = "accounts/mfaSignIn:start"

  struct Phone: Encodable, Sendable {}

  let mfaPendingCredential: String
  let mfaEnrollmentId: String
  var phoneSignInInfo = Phone()

  struct Response: Decodable, Sendable {
    struct PhoneSession: Decodable, Sendable {
      var sessionInfo: String?
    }

    var phoneResponseInfo: PhoneSession?
  }
}

/// Completes a sign-in with a second factor.
struct FinalizeFactorSignInRequest: AuthRequest {
  typealias Response = FactorTokensResponse
  static let service = AuthServer.Service.identityV2
  static let operation = "accounts/mfaSignIn:finalize"

  let mfaPendingCredential: String
  var mfaEnrollmentId: String?
  var phoneVerificationInfo: PhoneVerification?
  var totpVerificationInfo: OneTimePasswordVerification?
}
