// Echoed text: the part of a client's string that an error message repeats. It bounds the size of error messages.

extension String {
  /// The string, or the beginning of a long string, for an error message.
  var echoed: String { echoed(1_024) }

  /// The string, or at most `bytes` bytes of complete characters followed by an ellipsis.
  func echoed(_ bytes: Int) -> String {
    guard utf8.count > bytes else { return self }
    var end = utf8.index(startIndex, offsetBy: bytes)
    while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
    return String(self[..<end]) + "…"
  }
}
