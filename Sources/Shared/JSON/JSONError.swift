// Why a JSON text was refused, and at which byte. One error type for the whole reader, so that
// endpoints can turn it into the product's own message with a line and a column.

/// Says why bytes are not the JSON text that was asked for, and where.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of refusal. A struct rather than an enum, so that kinds can be added.
  public struct Code: Sendable, Hashable {
    let name: String

    /// Names a kind of refusal; two kinds of one name are the same.
    public init(name: String) { self.name = name }

    /// The text ends inside a value.
    public static let unexpectedEnd = Code(name: "unexpected end of text")
    /// A byte that no JSON value may have at this place.
    public static let unexpectedByte = Code(name: "unexpected character")
    /// Bytes other than white space after the value.
    public static let trailingBytes = Code(name: "text after the value")
    /// A string's bytes are not well-formed UTF-8.
    public static let invalidUTF8 = Code(name: "broken UTF-8")
    /// An escape that JSON does not know, or one with bad hexadecimal digits.
    public static let invalidEscape = Code(name: "unknown escape")
    /// A `\u` escape that is one half of a surrogate pair without its other half.
    public static let loneSurrogate = Code(name: "lone surrogate")
    /// A raw control character inside a string.
    public static let controlCharacter = Code(name: "control character in a string")
    /// A number that does not follow JSON's grammar.
    public static let invalidNumber = Code(name: "malformed number")
    /// A number too large for a double.
    public static let numberOutOfRange = Code(name: "number out of range")
    /// More levels of arrays and objects than ``JSONLimits/depth`` allows.
    public static let tooDeep = Code(name: "nested too deeply")
    /// More bytes than ``JSONLimits/bytes`` allows.
    public static let tooLarge = Code(name: "text too large")
    /// A value of another type than the reader's caller asked for.
    public static let unexpectedType = Code(name: "value of another type expected")
  }

  /// What is wrong.
  public var code: Code
  /// The offset of the offending byte from the start of the text.
  public var offset: Int
  /// More about it, in words for the sender of the text; empty when the code says everything.
  public var detail: String

  /// Creates an error for the byte at `offset`.
  public init(_ code: Code, at offset: Int, detail: String = "") {
    self.code = code
    self.offset = offset
    self.detail = detail
  }

  /// The error in words, for logs.
  public var description: String {
    let text = detail.isEmpty ? code.name : detail
    return "\(text) at byte \(offset)"
  }

  /// The place of the error as people count: line and column, both from 1, columns in bytes.
  public func position(in bytes: UnsafeRawBufferPointer) -> (line: Int, column: Int) {
    var line = 1
    var column = 1
    for byte in bytes.prefix(max(0, offset)) {
      if byte == 0x0A {
        line += 1
        column = 1
      } else {
        column += 1
      }
    }
    return (line, column)
  }
}
