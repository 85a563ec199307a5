// Encodes and decodes `application/x-www-form-urlencoded` text: queries of links, and bodies of forms.

import Identity
import Ports

/// Form-encoded text.
package enum FormText {
  /// Encodes parameters. Only unreserved characters (RFC 3986) are not escaped.
  package static func encode(_ parameters: [(name: String, value: String)]) -> String {
    parameters.map { escape($0.name) + "=" + escape($0.value) }.joined(separator: "&")
  }

  /// Decodes parameters; nil for an invalid escape.
  package static func decode(_ text: some StringProtocol) -> [(name: String, value: String)]? {
    var pairs: [(name: String, value: String)] = []
    for pair in text.split(separator: "&") {
      let nameAndValue = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = RequestTarget.decode(Substring(nameAndValue[0]), plusIsSpace: true),
        let value = RequestTarget.decode(
          nameAndValue.count > 1 ? Substring(nameAndValue[1]) : "", plusIsSpace: true)
      else { return nil }
      pairs.append((name, value))
    }
    return pairs
  }

  private static func escape(_ text: String) -> String {
    var escaped = ""
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
        escaped.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        escaped += (digits.count == 1 ? "%0" : "%") + digits
      }
    }
    return escaped
  }
}
