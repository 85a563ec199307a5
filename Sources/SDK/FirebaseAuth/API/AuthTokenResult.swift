// An ID token and its claims.

public import Foundation

/// An ID token with its claims.
open class AuthTokenResult: NSObject, NSSecureCoding, @unchecked Sendable {
  // SAFETY: only constants; the claims consist of immutable JSON values.
  private let parsed: IDToken
  private let text: String
  private let dates: (expiration: Date, issued: Date, authenticated: Date)
  private let provider: String

  /// Parses a token.
  ///
  /// - Throws: `malformedJWT` if the string is not a token, or if a required claim is missing.
  init(parsing token: String) throws {
    let parsed = try IDToken(token)
    guard let expiration = parsed.expiration, let issued = parsed.date("iat"),
      let authenticated = parsed.date("auth_time"),
      let firebase = parsed.claims["firebase"] as? [String: Any],
      let provider = firebase["sign_in_provider"] as? String
    else {
      throw AuthErrorCode.malformedJWT.error(
        "The ID token lacks one of the claims exp, iat, auth_time and firebase.sign_in_provider.")
    }
    self.parsed = parsed
    self.provider = provider
    text = token
    dates = (expiration, issued, authenticated)
    super.init()
  }

  /// The token, a JSON Web Token.
  open var token: String { text }
  /// The time at which the token expires.
  open var expirationDate: Date { dates.expiration }
  /// The time at which the user signed in.
  open var authDate: Date { dates.authenticated }
  /// The time at which the token was issued.
  open var issuedAtDate: Date { dates.issued }
  /// The sign-in method, such as `password`, `anonymous`, `custom` or `google.com`.
  open var signInProvider: String { provider }
  /// The type of the second factor, such as `phone` or `totp`; empty if the sign-in had no second factor.
  open var signInSecondFactor: String {
    (parsed.claims["firebase"] as? [String: Any])?["sign_in_second_factor"] as? String ?? ""
  }
  /// All claims, including custom ones.
  open var claims: [String: Any] { parsed.claims }

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the token.
  public func encode(with coder: NSCoder) {
    coder.encodeValue(text)
  }

  /// Decodes a token; nil for an archive of another type.
  public required convenience init?(coder: NSCoder) {
    guard let token = coder.decodeValue(String.self) else { return nil }
    do { try self.init(parsing: token) } catch { return nil }
  }
}
