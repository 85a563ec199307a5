// The error of the JSON reader: a code and the offset of the offending byte. Endpoints convert it to Firebase's
// message with a line and a column.

/// The reason and the position at which a JSON text is rejected.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of an error. It is a struct, so that other modules can add codes.
  public struct Code: Sendable, Hashable {
    let name: String

    /// Creates a code. Codes with the same name are equal.
    public init(name: String) { self.name = name }

    /// The text ends inside a value.
    public static let unexpectedEnd = Code(name: "unexpected end of text")
    /// A byte that is not allowed here.
    public static let unexpectedByte = Code(name: "unexpected character")
    /// Bytes other than white space after the value.
    public static let trailingBytes = Code(name: "text after the value")
    /// A string is not well-formed UTF-8.
    public static let invalidUTF8 = Code(name: "broken UTF-8")
    /// An unknown escape, or an escape with invalid hexadecimal digits.
    public static let invalidEscape = Code(name: "unknown escape")
    /// A `\u` escape of one half of a surrogate pair without the other half.
    public static let loneSurrogate = Code(name: "lone surrogate")
    /// A raw control character inside a string.
    public static let controlCharacter = Code(name: "control character in a string")
    /// A malformed number.
    public static let invalidNumber = Code(name: "malformed number")
    /// A number too large for a double.
    public static let numberOutOfRange = Code(name: "number out of range")
    /// More levels of arrays and objects than ``JSONLimits/depth`` allows.
    public static let tooDeep = Code(name: "nested too deeply")
    /// More bytes than ``JSONLimits/bytes`` allows.
    public static let tooLarge = Code(name: "text too large")
    /// A value of another type than the caller requested.
    public static let unexpectedType = Code(name: "value of another type expected")
  }

  /// The kind of the error.
  public var code: Code
  /// The offset of the offending byte from the start of the text.
  public var offset: Int
  /// Details for the sender of the text; empty if the code suffices.
  public var detail: String

  /// Creates an error for the byte at `offset`.
  public init(_ code: Code, at offset: Int, detail: String = "") {
    self.code = code
    self.offset = offset
    self.detail = detail
  }

  /// The error as text, for logs.
  public var description: String {
    let text = detail.isEmpty ? code.name : detail
    return "\(text) at byte \(offset)"
  }

  /// The position of the error as line and column, both from 1. Columns count bytes.
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
