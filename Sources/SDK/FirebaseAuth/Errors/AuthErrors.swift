// The domain and the `userInfo` keys of authentication errors.

public import Foundation

/// The domain of every error of `Auth` and `User`.
public let AuthErrorDomain = "FIRAuthErrorDomain"
/// The key of the code's name, such as `ERROR_WRONG_PASSWORD`.
public let AuthErrorUserInfoNameKey = "FIRAuthErrorUserInfoNameKey"
/// The key of the e-mail address of an existing account.
public let AuthErrorUserInfoEmailKey = "FIRAuthErrorUserInfoEmailKey"
/// The key of a credential with which the user may sign in instead.
public let AuthErrorUserInfoUpdatedCredentialKey = "FIRAuthErrorUserInfoUpdatedCredentialKey"
/// The key of the `MultiFactorResolver` that completes a sign-in.
public let AuthErrorUserInfoMultiFactorResolverKey = "FIRAuthErrorUserInfoMultiFactorResolverKey"

/// The domain and the keys as members of a class, as in Google's SDK.
open class AuthErrors: NSObject {
  /// The domain of every error of `Auth` and `User`.
  public static let domain = AuthErrorDomain
  /// The key of the code's name, such as `ERROR_WRONG_PASSWORD`.
  public static let userInfoNameKey = AuthErrorUserInfoNameKey
  /// The key of the e-mail address that an account already has.
  public static let userInfoEmailKey = AuthErrorUserInfoEmailKey
  /// The key of a credential with which the user may sign in instead.
  public static let userInfoUpdatedCredentialKey = AuthErrorUserInfoUpdatedCredentialKey
  /// The key of the `MultiFactorResolver` that completes a sign-in.
  public static let userInfoMultiFactorResolverKey = AuthErrorUserInfoMultiFactorResolverKey
}
