// Publishes the public keys that verify tokens, at the same paths as the hosted product: as JSON Web Keys, and as
// certificates for older libraries.

import Identity
import JSON
import NIOCore
import NIOHTTP1
package import Ports

/// Serves the public keys.
package struct PublicKeysHandler: IdentityRouteHandler {
  /// Seconds for which clients may cache the keys. A new key is published a day before its first signature.
  private static let cacheSeconds = 6 * 3600
  private static let account = "securetoken@system.gserviceaccount.com"

  /// Creates the handler.
  package init() {}

  package func response(to request: HTTPRequest, _ service: IdentityService) async throws -> HTTPResponse? {
    guard request.head.method == .GET || request.head.method == .HEAD else { return nil }
    let keys = service.services.tokens.publishedKeys
    switch request.target.segments ?? [] {
    case ["www.googleapis.com", "service_accounts", "v1", "jwk", Self.account]:
      return Self.cacheable(try Self.jsonWebKeys(keys))
    case ["www.googleapis.com", "robot", "v1", "metadata", "x509", Self.account],
      ["www.googleapis.com", "identitytoolkit", "v3", "relyingparty", "publicKeys"]:
      var object = JSONObject()
      for key in keys { object[key.id] = .string(try key.certificate(lifetime: SigningKeys.lifetimeSeconds)) }
      return Self.cacheable(object)
    default: return nil
    }
  }

  fileprivate static func jsonWebKeys(_ keys: [SigningKey]) throws -> JSONObject {
    ["keys": .array(try keys.map { .object(try $0.publicKey.jwk) })]
  }

  private static func cacheable(_ object: JSONObject) -> HTTPResponse {
    var response = HTTPResponse.identity(object)
    response.headers.replaceOrAdd(
      name: "cache-control", value: "public, max-age=\(cacheSeconds), must-revalidate, no-transform")
    return response
  }
}

extension IdentityCall {
  /// `sessionCookiePublicKeys` (GET).
  func getSessionCookieKeys() async throws -> JSONObject {
    let keys = services.tokens.publishedKeys
    guard !keys.isEmpty else {
      throw IdentityError.notImplemented("An emulator's session cookies are not signed.")
    }
    return try PublicKeysHandler.jsonWebKeys(keys)
  }
}
