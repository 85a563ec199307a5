/// A position in the text of a rules file: the first character is line 1, column 1.
package struct SourcePosition: Hashable, Sendable, Comparable {
  /// The line, counted from 1.
  package var line: Int

  /// The column, counted from 1 in Unicode scalars; in rules of the Realtime Database, in UTF-16 code units.
  package var column: Int

  /// The position at `line` and `column`, both counted from 1.
  package init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  package static func < (left: SourcePosition, right: SourcePosition) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}
