// Encodes callers as bytes: 'a' for an administrator, 'n' for an anonymous caller, 'u' for a user with id and
// claims.

import RealtimeModel

/// Encodes and decodes callers.
enum CallerCoding {
  static func encode(_ caller: Caller) -> [UInt8] {
    switch caller.identity {
    case .administrator: return [UInt8(ascii: "a")]
    case .anonymous: return [UInt8(ascii: "n")]
    case .user(let id, let claims):
      var encoder = NodeEncoder()
      encoder.append(id)
      encoder.append(claims)
      return [UInt8(ascii: "u")] + encoder.bytes
    }
  }

  static func decode(_ decoder: inout NodeDecoder) throws -> Caller {
    switch try decoder.byte() {
    case UInt8(ascii: "a"): .administrator
    case UInt8(ascii: "n"): .anonymous
    case UInt8(ascii: "u"): Caller(.user(id: try decoder.text(), claims: try decoder.node()))
    default: throw NodeDecoder.corrupted
    }
  }
}
