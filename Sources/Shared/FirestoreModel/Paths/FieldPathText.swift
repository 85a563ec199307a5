// Parses and formats field paths as text: `a.b`, `` `a.b`.c ``.
//
// A segment is `[a-zA-Z_][a-zA-Z_0-9]*`, or one or more characters between backticks. Between backticks, a backslash
// escapes the next character.

extension FieldPath: CustomStringConvertible {
  /// Parses the text form.
  ///
  /// - Throws: INVALID_ARGUMENT with Cloud Firestore's error message.
  public init(parsing text: String) throws(FirestoreError) {
    // A quoted name of one byte takes at most five bytes of text with its dot, but counts as two bytes of the path.
    guard text.utf8.count <= 3 * Limits.fieldPathBytes else { throw FieldPath.tooLong }
    guard let segments = FieldPath.split(text) else {
      throw .invalidArgument(
        "Invalid property path \"\(text.echoed)\". Unquoted property paths must match regex "
          + "([a-zA-Z_][a-zA-Z_0-9]*), and quoted property paths must match regex "
          + "(`(?:[^`\\\\]|(?:\\\\.))+`).")
    }
    // Quotes and backslashes do not count. Otherwise some fields that can be stored could not be named.
    guard segments.reduce(segments.count - 1, { $0 + $1.utf8.count }) <= Limits.fieldPathBytes else {
      throw FieldPath.tooLong
    }
    self.init(unchecked: segments)
  }

  private static let tooLong = FirestoreError.invalidArgument(
    "Property path is longer than \(Limits.fieldPathBytes) bytes.")

  /// The text form in which every name that is not simple is quoted.
  public var description: String {
    var text = ""
    for (index, name) in segments.enumerated() {
      if index > 0 { text += "." }
      if FieldPath.isSimple(name) {
        text += name
        continue
      }
      text += "`"
      for scalar in name.unicodeScalars {
        if scalar == "`" || scalar == "\\" { text += "\\" }
        text.unicodeScalars.append(scalar)
      }
      text += "`"
    }
    return text
  }

  /// Whether a name needs no quotes.
  public static func isSimple(_ name: String) -> Bool {
    var isFirst = true
    for byte in name.utf8 {
      guard isNameByte(byte, first: isFirst) else { return false }
      isFirst = false
    }
    return !isFirst
  }

  private static func isNameByte(_ byte: UInt8, first: Bool) -> Bool {
    switch byte {
    case 0x41...0x5A, 0x61...0x7A, 0x5F: true
    case 0x30...0x39: !first
    default: false
    }
  }

  /// The names in a text; nil if it violates the grammar.
  private static func split(_ text: String) -> [String]? {
    var segments: [String] = []
    let bytes = Array(text.utf8)
    var index = 0
    while true {
      guard index < bytes.count else { return nil }
      var name: [UInt8] = []
      if bytes[index] == 0x60 {
        index += 1
        while true {
          guard index < bytes.count else { return nil }
          let byte = bytes[index]
          index += 1
          if byte == 0x60 { break }
          guard byte == 0x5C else {
            name.append(byte)
            continue
          }
          guard index < bytes.count else { return nil }
          name.append(bytes[index])
          index += 1
        }
      } else {
        while index < bytes.count, isNameByte(bytes[index], first: name.isEmpty) {
          name.append(bytes[index])
          index += 1
        }
      }
      guard !name.isEmpty else { return nil }
      // The text is split only at ASCII bytes, so the parts of valid UTF-8 are valid.
      segments.append(String(decoding: name, as: UTF8.self))
      if index == bytes.count { return segments }
      guard bytes[index] == 0x2E else { return nil }
      index += 1
    }
  }
}
