// Marks give the expressions of a rules file of the Realtime Database numbers and positions, so that an evaluation can
// record their values. Rules in force have no marks, so their evaluation has no additional cost.

import RealtimeModel

/// An expression whose values are recorded.
struct RealtimeMark: Sendable {
  /// The position of its first character. Columns count UTF-16 code units.
  let position: SourcePosition
  /// The position after its last character.
  let end: SourcePosition
  /// The range of its bytes in the rule, in bytes of UTF-8.
  let range: Range<Int>
  /// Its text, at most about 96 characters.
  let text: String
}

/// Collects the marks of one rules file while it is compiled.
final class RealtimeMarks {
  private let file: [UInt8]
  private let lineStarts: [Int]
  private var expression: [UInt8] = []
  /// The position in the file of each byte of the current expression, and of its end.
  private var positions: [SourcePosition] = []
  /// The index of the first mark of the current rule.
  private var firstMark = 0
  /// The marks of all rules. The marks of one rule are in the order in which its expressions were checked.
  private(set) var marks: [RealtimeMark] = []

  init(_ text: String) {
    let bytes = Array(text.utf8)
    file = bytes
    lineStarts = [0] + bytes.indices.filter { bytes[$0] == 0x0A }.map { $0 + 1 }
  }

  /// The marks of the current rule.
  var rangeOfCurrentRule: Range<Int> { firstMark..<marks.count }

  /// Begins a rule.
  func beginRule(_ site: RuleSite) {
    firstMark = marks.count
    guard case .expression(let text) = site.rule else { return }
    expression = Array(text.utf8)
    positions = positionsOfBytes(fromLine: site.line, column: site.column)
  }

  /// Marks an expression.
  /// - Parameter range: its bytes in the rule.
  func add(_ range: Range<Int>) -> Int32 {
    let bytes = expression[range.clamped(to: 0..<expression.count)]
    let text = String(decoding: bytes.prefix(96), as: UTF8.self) + (bytes.count > 96 ? "…" : "")
    marks.append(
      RealtimeMark(
        position: position(at: range.lowerBound), end: position(at: range.upperBound), range: range,
        text: text))
    return Int32(marks.count - 1)
  }

  private func position(at index: Int) -> SourcePosition {
    positions.indices.contains(index)
      ? positions[index] : positions.last ?? SourcePosition(line: 1, column: 1)
  }

  /// The position in the file of each byte of the current expression. The file contains the expression as a JSON
  /// string, in which one escape represents one or more bytes.
  private func positionsOfBytes(fromLine line: Int, column: Int) -> [SourcePosition] {
    var position = SourcePosition(line: line, column: column)
    var positions: [SourcePosition] = []
    guard var offset = offset(of: position) else { return [] }
    while positions.count < expression.count, offset < file.count {
      let escape = escapeLength(at: offset)
      if let escape {
        // The bytes of an escaped character have one position.
        for _ in 0..<escape.bytes { positions.append(position) }
        position.column += escape.length
        offset += escape.length
        continue
      }
      positions.append(position)
      let byte = file[offset]
      offset += 1
      if byte == 0x0A {
        position = SourcePosition(line: position.line + 1, column: 1)
      } else if offset == file.count || file[offset] & 0xC0 != 0x80 {
        // The column advances after the last byte of a character. A character of four bytes has two code units.
        position.column += isLongCharacter(endingAt: offset) ? 2 : 1
      }
    }
    return positions + [position]
  }

  private func isLongCharacter(endingAt end: Int) -> Bool { end >= 4 && file[end - 4] & 0xF8 == 0xF0 }

  private func offset(of position: SourcePosition) -> Int? {
    guard lineStarts.indices.contains(position.line - 1) else { return nil }
    var offset = lineStarts[position.line - 1]
    var column = 1
    while column < position.column, offset < file.count {
      column += file[offset] & 0xF8 == 0xF0 ? 2 : 1
      offset += 1
      while offset < file.count, file[offset] & 0xC0 == 0x80 { offset += 1 }
    }
    return offset
  }

  /// The length of a JSON escape in the file, and the number of bytes that it stands for; nil for another character.
  private func escapeLength(at offset: Int) -> (length: Int, bytes: Int)? {
    guard file[offset] == UInt8(ascii: "\\"), offset + 1 < file.count else { return nil }
    guard file[offset + 1] == UInt8(ascii: "u") else { return (2, 1) }
    guard let unit = unit(at: offset) else { return (2, 1) }
    if (0xD800..<0xDC00).contains(unit) { return (12, 4) }
    return (6, unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3)
  }

  private func unit(at offset: Int) -> UInt32? {
    guard offset + 6 <= file.count else { return nil }
    return UInt32(String(decoding: file[(offset + 2)..<(offset + 6)], as: UTF8.self), radix: 16)
  }
}
