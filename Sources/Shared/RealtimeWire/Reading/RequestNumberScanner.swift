// Finds the number of a request that is malformed or too large to buffer, so that the server can respond with an error.
//
// The scanner follows only the structure of the message, in one pass, and keeps no bytes. Values are not validated, so
// that a malformed value does not hide the number.
//
// Invariant: the number is the member `r` of the message's `d`, never text from inside a body. A number that precedes
// every nested object and array is known immediately. Otherwise it is known only at the end of the message, when every
// bracket is closed and nothing follows.

/// Scans a message for its request number.
public struct RequestNumberScanner: Sendable {
  /// The object whose members are being scanned.
  private enum Scope: Sendable {
    case start, message, request, end
  }

  /// The expected next token of the object.
  private enum Next: Sendable {
    case firstName, name, colon, value, comma
  }

  private var scope = Scope.start
  private var next = Next.firstName
  /// The number of open brackets inside a skipped value, and whether any value had brackets.
  private var nesting = 0
  private var hasNested = false
  private var isInText = false
  private var isEscaped = false
  /// The last byte of the current string, and the string's length. The length is counted up to 2.
  private var lastByte: UInt8 = 0
  private var length = 0
  /// The name of the current member if the name has one byte, as `r`, `d` and `t` have.
  private var name: UInt8 = 0
  /// The bytes of the current number or literal.
  private var digits: [UInt8] = []
  private var isInWord = false
  /// Whether the message's object `d` was opened.
  private var hasRequest = false
  /// Whether the message's type `t` is `d`, the type of requests.
  private var isData = false
  /// Whether the message is malformed, so that it has no certain number.
  private var isBroken = false
  /// The number that was read; it is valid only if the rest of the message is well formed.
  private var found: Int64?
  /// The number, if it is valid regardless of the bytes that follow.
  private var confirmed: Int64?

  /// Creates a scanner at the start of a message.
  public init() {}

  /// The number; nil while it is unknown.
  public var value: Int64? { confirmed ?? (scope == .end && !isBroken && isData ? found : nil) }

  /// Scans more bytes of the message.
  public mutating func scan(_ bytes: UnsafeRawBufferPointer) {
    for byte in bytes {
      if isBroken || confirmed != nil { return }
      scan(byte)
    }
  }

  private mutating func scan(_ byte: UInt8) {
    if isInText { return scanText(byte) }
    if nesting > 0 {
      switch byte {
      case UInt8(ascii: "\""): isInText = true
      case UInt8(ascii: "{"), UInt8(ascii: "["): nesting += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): nesting -= 1
      default: break
      }
      return
    }
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): endWord()
    case UInt8(ascii: ","):
      endWord()
      expect(.comma, then: .name)
    case UInt8(ascii: ":"): expect(.colon, then: .value)
    case UInt8(ascii: "\""):
      (isInText, length) = (true, 0)
      if next != .firstName, next != .name, next != .value { isBroken = true }
    case UInt8(ascii: "{"), UInt8(ascii: "["): open(byte)
    case UInt8(ascii: "]"): isBroken = true
    case UInt8(ascii: "}"):
      endWord()
      close()
    default: scanWord(byte)
    }
  }

  private mutating func expect(_ expected: Next, then following: Next) {
    if scope == .start || scope == .end || next != expected { isBroken = true }
    next = following
  }

  private mutating func scanText(_ byte: UInt8) {
    if isEscaped {
      isEscaped = false
    } else if byte == UInt8(ascii: "\\") {
      isEscaped = true
    } else if byte == UInt8(ascii: "\"") {
      isInText = false
      if nesting == 0 { endText() }
      return
    }
    (lastByte, length) = (byte, min(length + 1, 2))
  }

  private mutating func endText() {
    if next == .value {
      if scope == .message, name == UInt8(ascii: "t") {
        isData = length == 1 && lastByte == UInt8(ascii: "d")
        if !isData { isBroken = true }
      }
      expect(.value, then: .comma)
    } else {
      name = length == 1 ? lastByte : 0
      expect(next, then: .colon)
    }
  }

  private mutating func open(_ bracket: UInt8) {
    let isObject = bracket == UInt8(ascii: "{")
    if scope == .start, isObject {
      scope = .message
    } else if scope == .message, next == .value, name == UInt8(ascii: "d"), isObject, !hasRequest {
      (scope, next, hasRequest) = (.request, .firstName, true)
    } else {
      expect(.value, then: .comma)
      nesting = 1
      hasNested = true
    }
  }

  private mutating func close() {
    if next != .comma, next != .firstName { isBroken = true }
    switch scope {
    case .start, .end: isBroken = true
    case .message: scope = .end
    case .request: scope = .message
    }
    next = .comma
  }

  private mutating func scanWord(_ byte: UInt8) {
    if !isInWord {
      expect(.value, then: .comma)
      isInWord = true
      digits = []
    }
    if digits.count < Self.maximumDigits { digits.append(byte) }
  }

  /// The maximum length of a number or literal that is kept. Every request number is shorter.
  private static let maximumDigits = 24

  private mutating func endWord() {
    guard isInWord else { return }
    isInWord = false
    guard scope == .request, name == UInt8(ascii: "r"), found == nil else { return }
    guard digits.count < Self.maximumDigits, digits.first != UInt8(ascii: "+") else { return }
    found = Int64(String(decoding: digits, as: UTF8.self))
    if !hasNested { confirmed = found }
  }
}
