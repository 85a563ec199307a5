// The number of a request that cannot be read, or is too large to be kept, so that it can be answered all the same.
//
// It is found by structure alone, in one pass over bytes that need not stay: what a value is does not matter, so that one
// that is no JSON hides nothing. Invariant: the number is the member `r` of the message's `d`, never text from within a
// body. Before any other object or list only what was read has to prove that; behind one the message's end has to, where
// all that was opened is closed, and nothing follows.

/// Looks for the number of the request that a message is.
public struct RequestNumberScanner: Sendable {
  /// The object whose members are being read.
  private enum Place: Sendable {
    case start, message, request, end
  }

  /// What comes next there.
  private enum Next: Sendable {
    case firstName, name, colon, value, comma
  }

  private var place = Place.start
  private var next = Next.firstName
  /// How many brackets are open inside a value that does not matter, and whether there ever were any.
  private var nesting = 0
  private var hasNested = false
  private var isInText = false
  private var isEscaped = false
  /// The last byte of a text, and whether it has one, or more.
  private var letter: UInt8 = 0
  private var length = 0
  /// The name of the member at hand, if it has one byte.
  private var name: UInt8 = 0
  /// What was read of a number, or of anything else that has no bounds of its own.
  private var digits: [UInt8] = []
  private var isInWord = false
  private var hasRequest = false
  private var isData = false
  private var isBroken = false
  private var found: Int64?
  private var proven: Int64?

  /// Starts before a message.
  public init() {}

  /// The number, as far as it can be told by now.
  public var value: Int64? { proven ?? (place == .end && !isBroken && isData ? found : nil) }

  /// Goes over more bytes of the message.
  public mutating func scan(_ bytes: UnsafeRawBufferPointer) {
    for byte in bytes {
      if isBroken || proven != nil { return }
      take(byte)
    }
  }

  private mutating func take(_ byte: UInt8) {
    if isInText { return takeText(byte) }
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
    default: takeWord(byte)
    }
  }

  private mutating func expect(_ expected: Next, then following: Next) {
    if place == .start || place == .end || next != expected { isBroken = true }
    next = following
  }

  private mutating func takeText(_ byte: UInt8) {
    if isEscaped {
      isEscaped = false
    } else if byte == UInt8(ascii: "\\") {
      isEscaped = true
    } else if byte == UInt8(ascii: "\"") {
      isInText = false
      if nesting == 0 { endText() }
      return
    }
    (letter, length) = (byte, min(length + 1, 2))
  }

  private mutating func endText() {
    if next == .value {
      if place == .message, name == UInt8(ascii: "t") {
        isData = length == 1 && letter == UInt8(ascii: "d")
        if !isData { isBroken = true }
      }
      expect(.value, then: .comma)
    } else {
      name = length == 1 ? letter : 0
      expect(next, then: .colon)
    }
  }

  private mutating func open(_ bracket: UInt8) {
    let isObject = bracket == UInt8(ascii: "{")
    if place == .start, isObject {
      place = .message
    } else if place == .message, next == .value, name == UInt8(ascii: "d"), isObject, !hasRequest {
      (place, next, hasRequest) = (.request, .firstName, true)
    } else {
      expect(.value, then: .comma)
      nesting = 1
      hasNested = true
    }
  }

  private mutating func close() {
    if next != .comma, next != .firstName { isBroken = true }
    switch place {
    case .start, .end: isBroken = true
    case .message: place = .end
    case .request: place = .message
    }
    next = .comma
  }

  private mutating func takeWord(_ byte: UInt8) {
    if !isInWord {
      expect(.value, then: .comma)
      isInWord = true
      digits = []
    }
    if digits.count < Self.mostDigits { digits.append(byte) }
  }

  /// No request's number has as many.
  private static let mostDigits = 24

  private mutating func endWord() {
    guard isInWord else { return }
    isInWord = false
    guard place == .request, name == UInt8(ascii: "r"), found == nil else { return }
    guard digits.count < Self.mostDigits, digits.first != UInt8(ascii: "+") else { return }
    found = Int64(String(decoding: digits, as: UTF8.self))
    if !hasNested { proven = found }
  }
}
