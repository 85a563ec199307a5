// What errors repeat of the texts that clients send: errors stay small, whatever they are about.

extension String {
  /// The text as an error repeats it: its beginning if it is long.
  var echoed: String { echoed(1_024) }

  /// The text, or an ellipsis behind as many of its bytes, without half a character.
  func echoed(_ bytes: Int) -> String {
    guard utf8.count > bytes else { return self }
    var end = utf8.index(startIndex, offsetBy: bytes)
    while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
    return String(self[..<end]) + "…"
  }
}
