// The replies of an SMTP server (RFC 5321, section 4.2), and their parser.
//
// Invariant: the parser keeps at most `maximumLines` lines of `maximumLineBytes` bytes.

/// A complete reply, which may have several lines.
struct SMTPReply: Sendable, Equatable {
  var code: Int
  /// The texts of the lines, without the code.
  var lines: [String]

  /// The reply for a log: printable ASCII characters of the first line.
  var summary: String {
    let text = (lines.first ?? "").unicodeScalars.prefix(200).filter { (0x20...0x7E).contains($0.value) }
    return "\(code) \(String(String.UnicodeScalarView(text)))"
  }
}

/// Parses replies from bytes.
struct SMTPReplyParser {
  /// Maximum bytes of a line: twice as many as the protocol allows.
  private static let maximumLineBytes = 1024
  private static let maximumLines = 100

  private var line: [UInt8] = []
  private var reply: SMTPReply?

  /// Adds a byte.
  /// - Returns: the reply that the byte completes; nil if there is none.
  /// - Throws: ``DeliveryFailure`` for bytes that are not a reply, or for a reply that is too long.
  mutating func receive(_ byte: UInt8) throws(DeliveryFailure) -> SMTPReply? {
    guard byte == UInt8(ascii: "\n") else {
      guard line.count < Self.maximumLineBytes else {
        throw DeliveryFailure("a line of the relay is too long")
      }
      line.append(byte)
      return nil
    }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    defer { line = [] }
    let digits = line.prefix(3)
    let separator = line.dropFirst(3).first
    guard digits.count == 3, let code = Int(String(decoding: digits, as: UTF8.self)),
      (200...599).contains(code), separator == nil || separator == 0x20 || separator == UInt8(ascii: "-")
    else { throw DeliveryFailure("the relay does not speak SMTP") }
    var current = reply ?? SMTPReply(code: code, lines: [])
    guard current.code == code, current.lines.count < Self.maximumLines else {
      throw DeliveryFailure("a reply of the relay is inconsistent or too long")
    }
    current.lines.append(String(decoding: line.dropFirst(4), as: UTF8.self))
    let isLast = separator != UInt8(ascii: "-")
    reply = isLast ? nil : current
    return isLast ? current : nil
  }
}
