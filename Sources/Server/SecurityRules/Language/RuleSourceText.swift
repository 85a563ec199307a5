// The text of a rules file with an index of its lines, to find the characters of an expression by its positions.

import Crypto

/// The text of a rules file, addressed by line and column.
struct RuleSourceText: Sendable {
  private let text: String.UnicodeScalarView
  /// The start of each line: its index, and the number of Unicode scalars before it.
  private let lines: [(index: String.Index, offset: Int)]
  private let columnsAreUTF16: Bool

  /// - Parameter columnsAreUTF16: whether columns count UTF-16 code units, as in the Realtime Database; otherwise they
  ///   count Unicode scalars.
  init(_ source: String, columnsAreUTF16: Bool = false) {
    text = source.unicodeScalars
    self.columnsAreUTF16 = columnsAreUTF16
    var lines = [(index: text.startIndex, offset: 0)]
    var offset = 0
    for index in text.indices {
      offset += 1
      if text[index] == "\n" { lines.append((text.index(after: index), offset)) }
    }
    self.lines = lines
  }

  /// The number of Unicode scalars before a position.
  func offset(of position: SourcePosition) -> Int {
    guard lines.indices.contains(position.line - 1) else { return 0 }
    let line = lines[position.line - 1]
    guard columnsAreUTF16 else { return line.offset + position.column - 1 }
    var (count, column) = (0, 1)
    for scalar in text[line.index...] {
      guard column < position.column else { break }
      column += UTF16.width(scalar)
      count += 1
    }
    return line.offset + count
  }

  /// The characters from one position to another, both included, at most `limit` of them.
  func characters(from start: SourcePosition, through end: SourcePosition, limit: Int) -> String {
    guard lines.indices.contains(start.line - 1) else { return "" }
    let count = offset(of: end) - offset(of: start) + 1
    let line = lines[start.line - 1].index
    guard count > 0,
      let first = text.index(line, offsetBy: start.column - 1, limitedBy: text.endIndex)
    else { return "" }
    let last = text.index(first, offsetBy: min(count, limit), limitedBy: text.endIndex) ?? text.endIndex
    return String(text[first..<last]) + (count > limit ? "…" : "")
  }
}

/// Identifies the text of a rules file in reports.
enum RulesFingerprint {
  /// The SHA-256 hash of a text in hexadecimal digits.
  static func of(_ text: String) -> String {
    SHA256.hash(data: Array(text.utf8)).map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }
}
