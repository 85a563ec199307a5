// Encodes principals as bytes, for the rows of onDisconnect writes.
//
//   'a'                                an administrator of every project
//   'n'                                nobody
//   's' role credentials               a service account
//   'U' id tenant flag claims credentials   a user; the flag is 1 if an administrator acts as this user
//   'u' id claims                      a user, as earlier versions wrote it: the claims are an encoded node
//
// Credentials are project, issuer, expiry and key ID; earlier versions wrote no key ID. Strings and claims, which are JSON,
// are preceded by their length. An optional value is preceded by 0 or 1.

import Access
import JSON
import RealtimeModel

/// Encodes and decodes principals.
enum PrincipalCoding {
  static func encode(_ principal: Principal) -> [UInt8] {
    if principal == .administrator { return [UInt8(ascii: "a")] }
    var encoder = NodeEncoder()
    switch principal.identity {
    case .nobody: return [UInt8(ascii: "n")]
    case .service(let role):
      encoder.append(UInt8(ascii: "s"))
      encoder.append(role.rawValue)
    case .user(let user):
      encoder.append(UInt8(ascii: "U"))
      encoder.append(user.id)
      encoder.append(optional: user.tenant)
      encoder.append(UInt8(user.isOverride ? 1 : 0))
      encoder.append(String(decoding: JSONValue.object(user.claims.json).json(), as: UTF8.self))
    }
    encoder.append(optional: principal.project)
    encoder.append(optional: principal.issuer)
    encoder.append(optional: principal.expiry.map { String($0) })
    encoder.append(optional: principal.keyID)
    return encoder.bytes
  }

  static func decode(_ decoder: inout NodeDecoder) throws -> Principal {
    let identity: Principal.Identity
    switch try decoder.byte() {
    case UInt8(ascii: "a"): return .administrator
    case UInt8(ascii: "n"): return .nobody
    case UInt8(ascii: "u"):
      let id = try decoder.text()
      var writer = JSONWriter()
      writer.node(try decoder.node(), .plain)
      return .user(id, claims: Claims(try object(writer.bytes)))
    case UInt8(ascii: "s"):
      guard let role = ServiceRole(rawValue: try decoder.text()) else { throw NodeDecoder.corrupted }
      identity = .service(role)
    case UInt8(ascii: "U"):
      let (id, tenant) = (try decoder.text(), try decoder.optionalText())
      let isOverride = try decoder.byte() != 0
      let claims = try object(Array(try decoder.text().utf8))
      identity = .user(User(id: id, tenant: tenant, claims: Claims(claims), isOverride: isOverride))
    default: throw NodeDecoder.corrupted
    }
    let (project, issuer) = (try decoder.optionalText(), try decoder.optionalText())
    let expiry = try decoder.optionalText().map { text in
      guard let expiry = Int64(text) else { throw NodeDecoder.corrupted }
      return expiry
    }
    let keyID = decoder.isAtEnd ? nil : try decoder.optionalText()
    return Principal(identity, project: project, issuer: issuer, keyID: keyID, expiry: expiry)
  }

  private static func object(_ bytes: [UInt8]) throws -> JSONObject {
    switch try? JSONValue(json: bytes, limits: JSONLimits(depth: 1_000, bytes: bytes.count)) {
    case .object(let object)?: return object
    case .null?: return JSONObject()
    default: throw NodeDecoder.corrupted
    }
  }
}

extension NodeEncoder {
  fileprivate mutating func append(optional text: String?) {
    append(UInt8(text == nil ? 0 : 1))
    if let text { append(text) }
  }
}

extension NodeDecoder {
  fileprivate mutating func optionalText() throws -> String? { try byte() == 0 ? nil : try text() }
}
