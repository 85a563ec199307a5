// A mailbox of an e-mail's header and envelope: an address with an optional display name (RFC 5322, section 3.4).
//
// Invariant: neither address nor name can add a header, a recipient or an SMTP command. A string that could do so is
// rejected, not corrected.

import Identity
import JSON

/// An e-mail address with an optional display name.
package struct Mailbox: Sendable, Equatable {
  /// The display name; nil for none.
  package let name: String?
  /// The address, such as `ada@example.com`.
  package let address: String

  /// Characters that separate addresses, or that end an address in a header or an SMTP command.
  private static let separators = Set("<>()[]:;,\"\\".unicodeScalars)
  /// Maximum bytes of a display name.
  private static let maximumNameBytes = 256
  /// Bytes of text in one encoded word, whose encoded form has at most 75 characters (RFC 2047, section 2).
  private static let encodedWordBytes = 42

  /// Parses `ada@example.com` or `Ada <ada@example.com>`; nil for any other string.
  package init?(_ text: String) {
    if text.hasSuffix(">"), let start = text.firstIndex(of: "<") {
      var name = text[..<start].trimmingSpaces
      if name.count >= 2, name.hasPrefix("\""), name.hasSuffix("\"") { name = name.dropFirst().dropLast() }
      self.init(name: String(name), address: String(text[text.index(after: start)...].dropLast()))
    } else {
      self.init(address: text)
    }
  }

  /// Creates a mailbox without a name; nil if the string is not exactly one address.
  init?(address: String) { self.init(name: nil, address: address) }

  private init?(name: String?, address: String) {
    guard Self.isAddress(address) else { return nil }
    let name = name.flatMap { $0.isEmpty ? nil : $0 }
    if let name {
      guard name.utf8.count <= Self.maximumNameBytes, !name.unicodeScalars.contains(where: Self.isControl),
        !name.contains("\""), !name.contains("\\")
      else { return nil }
    }
    self.name = name
    self.address = address
  }

  /// Whether a text is one address without quotes, spaces and comments.
  private static func isAddress(_ text: String) -> Bool {
    EmailAddress.isValid(text)
      && !text.unicodeScalars.contains { scalar in
        isControl(scalar) || separators.contains(scalar) || scalar.properties.isWhitespace
      }
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }

  /// Whether the address has only ASCII characters. Other addresses need the extension SMTPUTF8 (RFC 6531).
  var isASCII: Bool { address.utf8.allSatisfy { $0 < 0x80 } }

  /// The part of the address after the `@`.
  var domain: Substring { address.split(separator: "@").last ?? "localhost" }

  /// The mailbox as a header contains it.
  var headerForm: String {
    guard let name else { return address }
    if name.utf8.allSatisfy({ $0 < 0x80 }) { return "\"\(name)\" <\(address)>" }
    var words: [String] = [""]
    for character in name {
      if let last = words.last, last.utf8.count + character.utf8.count > Self.encodedWordBytes {
        words.append("")
      }
      words[words.count - 1].append(character)
    }
    let encoded = words.map { "=?utf-8?B?\(Base64.encode(Array($0.utf8)))?=" }
    return encoded.joined(separator: " ") + " <\(address)>"
  }
}

extension Substring {
  fileprivate var trimmingSpaces: Substring {
    var text = self
    while text.first == " " { text.removeFirst() }
    while text.last == " " { text.removeLast() }
    return text
  }
}
