// A corpus of JSON texts that parsers commonly treat incorrectly. Each has its value, or the reason for rejecting it.

import JSON

enum Corpus {
  static let accepted: [(String, JSONValue)] = [
    ("null", .null), (" \t\r\n true \n", .bool(true)), ("false", .bool(false)),
    ("0", .int(0)), ("-1", .int(-1)), ("1.0", .int(1)), ("10e-1", .int(1)), ("1E2", .int(100)),
    ("1e+2", .int(100)), ("0.5", .double(0.5)), ("123456789012345678", .int(123_456_789_012_345_678)),
    ("\"\"", .string("")), (#""a\/b""#, .string("a/b")),
    (#""\"\\\b\f\n\r\t""#, .string("\"\\\u{8}\u{C}\n\r\t")),
    (#""\u0041\u00e9\u20AC""#, .string("A\u{E9}\u{20AC}")), (#""\ud83d\ude00""#, .string("😀")),
    (#""\uD83D\uDE00x""#, .string("😀x")), (#""\u0000""#, .string("\u{0}")),
    ("\"żółć 😀 \u{7F}\"", .string("żółć 😀 \u{7F}")), (#""\uffff""#, .string("\u{FFFF}")),
    ("\"\u{10FFFF}\"", .string("\u{10FFFF}")), ("\"12345678\"", .string("12345678")),
    ("\"1234567é\"", .string("1234567é")), ("[]", .array([])), ("[ ]", .array([])),
    ("{}", .object([:])), ("{ }", .object([:])),
    ("[1,[2,{}],null]", .array([.int(1), .array([.int(2), .object([:])]), .null])),
    (#"{"a":{"b":[]},"":1}"#, .object(["a": .object(["b": .array([])]), "": .int(1)])),
    (#" { "a" : 1 , "b" : [ 1 , 2 ] } "#, .object(["a": .int(1), "b": .array([.int(1), .int(2)])])),
  ]

  static let rejected: [([UInt8], JSONError.Code)] =
    texts.map { (Array($0.0.utf8), $0.1) } + malformedUTF8.map { ([0x22] + $0 + [0x22], .invalidUTF8) } + [
      ([0xEF, 0xBB, 0xBF, 0x31], .unexpectedByte), ([0x22, 0x00, 0x22], .controlCharacter),
      ([0xFE, 0xFF, 0x00, 0x31], .unexpectedByte), ([0x31, 0x00], .trailingBytes), ([0x00], .unexpectedByte),
    ]

  private static let texts: [(String, JSONError.Code)] = [
    ("", .unexpectedEnd), ("  ", .unexpectedEnd), ("nul", .unexpectedEnd), ("nulL", .unexpectedByte),
    ("True", .unexpectedByte), ("truefalse", .trailingBytes), ("1 2", .trailingBytes),
    ("{}{}", .trailingBytes),
    ("+1", .unexpectedByte), ("01", .invalidNumber), ("-01", .invalidNumber), ("00", .invalidNumber),
    ("-", .unexpectedEnd), ("-a", .invalidNumber), ("1.", .unexpectedEnd), ("1.a", .invalidNumber),
    (".5", .unexpectedByte), ("1e", .unexpectedEnd), ("1e+", .unexpectedEnd), ("1ex", .invalidNumber),
    ("1e400", .numberOutOfRange), ("-1e400", .numberOutOfRange),
    ("1e99999999999999999999", .numberOutOfRange),
    ("0x10", .trailingBytes), ("NaN", .unexpectedByte), ("Infinity", .unexpectedByte),
    ("-Infinity", .invalidNumber),
    ("1_000", .trailingBytes), ("'a'", .unexpectedByte), ("\"a", .unexpectedEnd), ("\"a\\", .unexpectedEnd),
    (#""\x41""#, .invalidEscape), (#""\'""#, .invalidEscape), (#""\u12G4""#, .invalidEscape),
    (#""\u+123""#, .invalidEscape), (#""\u12"#, .unexpectedEnd), (#""\ud800""#, .loneSurrogate),
    (#""\ud800\n""#, .loneSurrogate), (#""\udc00""#, .loneSurrogate), (#""\ud800\ud800""#, .loneSurrogate),
    (#""\ud800\u0041""#, .loneSurrogate), ("\"a\nb\"", .controlCharacter), ("\"a\tb\"", .controlCharacter),
    ("\"1234567890\u{1F}\"", .controlCharacter), ("[1,]", .unexpectedByte), ("[,1]", .unexpectedByte),
    ("[1 2]", .unexpectedByte), ("[1", .unexpectedEnd), ("[1,", .unexpectedEnd), ("[", .unexpectedEnd),
    ("]", .unexpectedByte), ("[1}", .unexpectedByte), ("{1:2}", .unexpectedByte),
    ("{\"a\"}", .unexpectedByte),
    ("{\"a\":}", .unexpectedByte), ("{\"a\":1,}", .unexpectedByte), ("{,}", .unexpectedByte),
    ("{\"a\" 1}", .unexpectedByte), ("{\"a\":1 \"b\":2}", .unexpectedByte), ("{\"a\":1]", .unexpectedByte),
    ("{\"a\":1", .unexpectedEnd), ("{", .unexpectedEnd), ("{a:1}", .unexpectedByte),
    ("// c\n1", .unexpectedByte),
    ("1/**/", .trailingBytes), ("\u{A0}1", .unexpectedByte), ("\u{B}1", .unexpectedByte),
  ]

  /// Malformed UTF-8: lone continuation bytes, overlong forms, surrogates, values beyond Unicode, truncated sequences.
  private static let malformedUTF8: [[UInt8]] = [
    [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
    [0xE2, 0x82], [0xE2, 0x82, 0x41], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80],
    [0xF0, 0x8F, 0xBF, 0xBF], [0xF0, 0x9F, 0x98], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
    [0xFE], [0xFF], [0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0xC3],
  ]
}
