// Tokens that a production server must reject, made from a valid token of a user and the key of a service account.

import Crypto
import Foundation
import Identity
import JSON

struct AttackTokens {
  /// The name of the token that was valid until a second ago.
  static let expired = "self-signed: expired"

  /// A valid ID token.
  let valid: String
  let account: ServiceAccountFile
  let tokenURI: String
  /// The public key of the server, which anyone can fetch.
  let publicKey: JSONObject

  /// The tokens by their names.
  func all() throws -> [(name: String, token: String)] {
    try headers() + signatures() + texts() + otherTokens() + selfSigned()
  }

  private var parts: [String] { valid.split(separator: ".").map(String.init) }

  private var claims: JSONObject { JSONWebToken(valid)?.claims ?? [:] }

  private static func segment(_ object: JSONObject) -> String {
    Base64.encode(JSONValue.object(object).json(), .urlSafe, padded: false)
  }

  private func header(_ change: (inout JSONObject) -> Void) -> String {
    var header = JSONWebToken(valid)?.header ?? [:]
    change(&header)
    return Self.segment(header)
  }

  /// Tokens with another header, signed by a key of the attacker.
  private func headers() throws -> [(String, String)] {
    let foreign = try SigningKey.make(at: Int64(Date().timeIntervalSince1970))
    func signed(_ change: (inout JSONObject) -> Void) throws -> String {
      let text = header(change) + "." + parts[1]
      return text + "." + Base64.encode(try foreign.sign(Array(text.utf8)), .urlSafe, padded: false)
    }
    let key = try foreign.publicKey.jwk
    return [
      ("a foreign key", try foreign.encode(claims)),
      ("a foreign key under the server's ID", try signed { _ in }),
      ("a key in the header", try signed { $0["jwk"] = .object(key) }),
      ("an address of keys", try signed { $0["jku"] = .string("http://127.0.0.1:1/keys") }),
      ("an address of certificates", try signed { $0["x5u"] = .string("http://127.0.0.1:1/keys") }),
      ("a certificate in the header", try signed { $0["x5c"] = .array([.string("AAAA")]) }),
      ("a critical extension", try signed { $0["crit"] = .array([.string("exp")]) }),
      ("no key ID", try signed { $0["kid"] = nil }),
      ("a number as key ID", try signed { $0["kid"] = .int(1) }),
      ("a path as key ID", try signed { $0["kid"] = .string("../../dev/null") }),
      ("PS256", try signed { $0["alg"] = .string("PS256") }),
      ("ES256", try signed { $0["alg"] = .string("ES256") }),
    ]
  }

  /// Tokens without the signature of the server.
  private func signatures() throws -> [(String, String)] {
    var tokens: [(String, String)] = []
    for algorithm in ["none", "None", "NONE", ""] {
      tokens.append(
        ("algorithm '\(algorithm)'", header { $0["alg"] = .string(algorithm) } + "." + parts[1] + "."))
    }
    for (name, secret) in [
      ("modulus", publicKey["n"]?.string ?? ""), ("key ID", publicKey["kid"]?.string ?? ""), ("nothing", ""),
    ] {
      let text = header { $0["alg"] = .string("HS256") } + "." + parts[1]
      let code = HMAC<SHA256>.authenticationCode(
        for: Array(text.utf8), using: SymmetricKey(data: Array(secret.utf8)))
      tokens.append(
        ("an HMAC with \(name)", text + "." + Base64.encode(Array(code), .urlSafe, padded: false)))
    }
    let signature = JSONWebToken(valid)?.signature ?? []
    func signed(_ signature: [UInt8]) -> String {
      parts[0] + "." + parts[1] + "." + Base64.encode(signature, .urlSafe, padded: false)
    }
    var changed = signature
    changed[100] ^= 1
    var claims = claims
    claims["sub"] = .string("admin")
    claims["user_id"] = .string("admin")
    tokens += [
      ("no signature", parts[0] + "." + parts[1] + "."), ("two segments", parts[0] + "." + parts[1]),
      ("a changed signature", signed(changed)), ("a short signature", signed(Array(signature.dropLast()))),
      ("zeros as signature", signed([UInt8](repeating: 0, count: signature.count))),
      ("another user", parts[0] + "." + Self.segment(claims) + "." + parts[2]),
    ]
    claims["exp"] = .int(.max)
    tokens.append(("another expiry", parts[0] + "." + Self.segment(claims) + "." + parts[2]))
    return tokens
  }

  /// Malformed texts that a lenient parser could accept.
  private func texts() -> [(String, String)] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    var spare = valid
    if let last = spare.popLast(), let index = alphabet.firstIndex(of: last) {
      spare.append(alphabet[index ^ 1])
    }
    return [
      ("padding", valid + "=="), ("spare bits", spare), ("a fourth segment", valid + ".AAAA"),
      ("lower case", valid.lowercased()), ("swapped segments", parts[1] + "." + parts[0] + "." + parts[2]),
      ("no token", "AAAA"), ("empty segments", ".."),
    ]
  }

  /// Tokens that Google's servers or an emulator accept.
  private func otherTokens() throws -> [(String, String)] {
    [
      ("the emulator's owner", "owner"), ("Google's access token", "ya29.AAAA"),
      ("the emulator's token", JSONWebToken.unsigned(claims)),
    ]
  }

  /// Tokens that a service account signs for another use.
  private func selfSigned() throws -> [(String, String)] {
    let api = JSONValue.string("https://firestore.googleapis.com/")
    let now = Int64(Date().timeIntervalSince1970)
    let customTokens =
      "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"
    let attacks: [(String, JSONObject)] = [
      ("a custom token", ["aud": .string(customTokens), "uid": .string("ada")]),
      ("an assertion", ["aud": .string(tokenURI)]),
      ("another API", ["aud": .string("https://storage.googleapis.com/")]),
      ("a list of APIs", ["aud": .array([api])]), ("no audience", [:]),
      ("two hours", ["aud": api, "exp": .int(now + 7200)]),
      ("expired", ["aud": api, "iat": .int(now - 60), "exp": .int(now - 1)]),
      ("issued tomorrow", ["aud": api, "iat": .int(now + 86_400), "exp": .int(now + 90_000)]),
      ("another subject", ["aud": api, "sub": .string("ada")]),
      ("another issuer", ["aud": api, "iss": .string("ada")]),
    ]
    return try attacks.map { ("self-signed: \($0.0)", try account.sign($0.1)) }
  }
}
