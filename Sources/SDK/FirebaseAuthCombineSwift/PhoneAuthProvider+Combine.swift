// Sends verification codes with futures.

public import FirebaseAuth
import PublisherSupport

#if canImport(Combine)
  public import Combine
#else
  public import OpenCombine
#endif

extension PhoneAuthProvider {
  /// Sends a message with a verification code. The call starts immediately, without a subscriber.
  ///
  /// - Parameters:
  ///   - phoneNumber: the number, with a plus sign and the country code.
  ///   - uiDelegate: not called.
  /// - Returns: a future of the verification ID. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func verifyPhoneNumber(
    _ phoneNumber: String, uiDelegate: (any AuthUIDelegate)? = nil
  ) -> Future<String, any Error> {
    .starting { completion in
      verifyPhoneNumber(phoneNumber, uiDelegate: uiDelegate) { completion.complete($0, $1) }
    }
  }

  /// Sends a message with a verification code. The call starts immediately, without a subscriber.
  ///
  /// - Parameters:
  ///   - phoneNumber: the number, with a plus sign and the country code.
  ///   - uiDelegate: not called.
  ///   - multiFactorSession: the session to enroll the phone as a second factor; nil to sign in with the
  ///     number.
  /// - Returns: a future of the verification ID. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func verifyPhoneNumber(
    _ phoneNumber: String, uiDelegate: (any AuthUIDelegate)? = nil, multiFactorSession: MultiFactorSession?
  ) -> Future<String, any Error> {
    .starting { completion in
      verifyPhoneNumber(phoneNumber, uiDelegate: uiDelegate, multiFactorSession: multiFactorSession) {
        completion.complete($0, $1)
      }
    }
  }

  /// Sends a code to the phone that is the second factor of the sign-in. The call starts immediately, without
  /// a subscriber.
  ///
  /// - Parameters:
  ///   - phoneMultiFactorInfo: the phone, from the hints of the resolver.
  ///   - uiDelegate: not called.
  ///   - multiFactorSession: the session of the resolver.
  /// - Returns: a future of the verification ID. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func verifyPhoneNumber(
    with phoneMultiFactorInfo: PhoneMultiFactorInfo, uiDelegate: (any AuthUIDelegate)? = nil,
    multiFactorSession: MultiFactorSession?
  ) -> Future<String, any Error> {
    .starting { completion in
      verifyPhoneNumber(
        with: phoneMultiFactorInfo, uiDelegate: uiDelegate, multiFactorSession: multiFactorSession
      ) { completion.complete($0, $1) }
    }
  }
}
