// A token that an application has signed with a database secret. Firebase's former token generators define its form:
// a JSON Web Token with the algorithm HS256 and the claims
//
//   v      the version, 0
//   iat    the time of issue, in seconds since 1970
//   exp    the expiry; without it the token is valid for a day
//   nbf    the time before which the token is not valid
//   d      the value of `auth` in rules, with the member `uid`
//   admin  whether rules are bypassed
//   debug  a request to report rules to the client, which the server ignores
//
// Invariant: nothing of a token is used before its signature was verified, except the algorithm in its header.

import Access
import Crypto
import JSON

/// A parsed token with the algorithm HS256. Its signature is not verified.
struct SecretSignedToken {
  /// Maximum bytes of a token. The generators' tokens have at most 1,024.
  static let maximumBytes = 4 << 10
  /// The validity of a token without an expiry, in seconds.
  static let defaultSeconds: Int64 = 86_400
  /// Seconds by which the clock of the application may be ahead.
  static let clockSkewSeconds: Int64 = 60
  /// Maximum UTF-16 code units of `uid`, the limit of the generators.
  static let maximumUserIDLength = 256

  private let header: JSONObject
  private let payload: [UInt8]
  private let signedBytes: [UInt8]
  private let signature: [UInt8]

  /// Parses a token; nil if it is not a JSON Web Token with the algorithm HS256.
  init?(_ text: Substring) {
    guard text.utf8.count <= Self.maximumBytes else { return nil }
    let segments = text.utf8.split(
      separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard segments.count == 3, let header = Self.bytes(segments[0]).flatMap(Self.object),
      header["alg"]?.string == "HS256", let payload = Self.bytes(segments[1]),
      let signature = Self.bytes(segments[2])
    else { return nil }
    self.header = header
    self.payload = payload
    self.signature = signature
    signedBytes = Array(text.utf8.prefix(segments[0].count + 1 + segments[1].count))
  }

  /// The principal of the token.
  ///
  /// - Parameters:
  ///   - keys: the secrets.
  ///   - project: the project of the secrets.
  ///   - now: the current time in seconds since 1970.
  /// - Throws: ``InvalidCredential``.
  func principal(
    signedByOneOf keys: [SymmetricKey], project: String, at now: Int64
  ) throws(InvalidCredential) -> Principal {
    for name in ["kid", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64", "zip", "enc"]
    where header[name] != nil { throw Self.untrusted("The token's header contains \(name).") }
    let isSigned = keys.contains {
      HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: signedBytes, using: $0)
    }
    guard isSigned else { throw Self.untrusted("No database secret has signed the token.") }
    guard let claims = Self.object(payload), claims["v"]?.int == 0 else {
      throw Self.untrusted("The token's version is not 0.")
    }
    let expiry = try Self.expiry(claims, at: now)
    // A simulated write must not be performed.
    guard claims["simulate"] == nil || claims["simulate"]?.bool == false else {
      throw Self.untrusted("Tokens that only simulate operations are not supported.")
    }
    if let isAdministrator = claims["admin"] {
      guard let isAdministrator = isAdministrator.bool else {
        throw Self.untrusted("The token's claim admin is not boolean.")
      }
      if isAdministrator { return Principal(.service(.administrator), project: project, expiry: expiry) }
    }
    return Principal(.user(try Self.user(claims)), project: project, expiry: expiry)
  }

  private static func user(_ claims: JSONObject) throws(InvalidCredential) -> User {
    guard let data = claims["d"]?.object, let id = data["uid"]?.string, id.utf16.count <= maximumUserIDLength
    else { throw untrusted("The token names no user.") }
    var auth: JSONObject = ["provider": .string("custom"), "token": .object(claims)]
    for member in data.members { auth[member.key] = member.value }
    return User(id: id, claims: Claims(auth), isOverride: true)
  }

  private static func expiry(_ claims: JSONObject, at now: Int64) throws(InvalidCredential) -> Int64 {
    guard let issued = claims["iat"]?.int, issued > 0, issued <= now + clockSkewSeconds else {
      throw untrusted("The token's time of issue is invalid.")
    }
    if let start = claims["nbf"] {
      guard let start = start.int, start <= now + clockSkewSeconds else {
        throw untrusted("The token is not valid yet.")
      }
    }
    var expiry = issued + defaultSeconds
    if let claim = claims["exp"] {
      guard let time = claim.int else { throw untrusted("The token's expiry is invalid.") }
      expiry = time
    }
    guard now < expiry else { throw InvalidCredential(.expired, reason: "The token has expired.") }
    return expiry
  }

  private static func untrusted(_ reason: String) -> InvalidCredential {
    InvalidCredential(.untrusted, reason: reason)
  }

  private static func bytes(_ segment: Substring.UTF8View) -> [UInt8]? { Base64.decode(segment, .urlSafe) }

  private static func object(_ bytes: [UInt8]) -> JSONObject? {
    (try? JSONValue(json: bytes, limits: JSONLimits(depth: 32, bytes: maximumBytes)))?.object
  }
}
