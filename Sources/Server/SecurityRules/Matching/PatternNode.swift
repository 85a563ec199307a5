// The syntax tree of a regular expression. Each rule language has a parser that produces it; the compiler and the
// matcher know neither language. Flags are resolved by the parsers: a set already contains both cases of a letter.

/// A node of a regular expression's syntax tree.
package indirect enum PatternNode: Sendable, Hashable {
  /// Matches the empty text.
  case empty
  /// Matches one unit of a set.
  case set(UnitSet)
  /// Matches the empty text at a position.
  case assertion(PatternAssertion)
  /// Matches the nodes one after another.
  case concatenation([PatternNode])
  /// Matches one of the nodes; earlier ones are preferred.
  case alternation([PatternNode])
  /// Matches a node several times, `maximum` nil for no upper bound. A greedy repetition prefers more times.
  case repetition(PatternNode, minimum: Int, maximum: Int?, isGreedy: Bool)
  /// Matches a node and records its range as the group `number`, from 1.
  case group(PatternNode, number: Int)
}

/// A condition on a position in the text.
package enum PatternAssertion: UInt8, Sendable, Hashable {
  /// The start of the text.
  case textStart
  /// The end of the text.
  case textEnd
  /// The start of the text, or the position after a line feed.
  case lineStart
  /// The end of the text, or the position before a line feed.
  case lineEnd
  /// A word boundary: between a word unit (`[0-9A-Za-z_]`) and another unit or an end of the text.
  case wordBoundary
  /// A position that is not a word boundary.
  case notWordBoundary

  /// Whether the condition holds between two units; nil stands for an end of the text.
  func holds(between previous: UInt32?, and next: UInt32?) -> Bool {
    switch self {
    case .textStart: previous == nil
    case .textEnd: next == nil
    case .lineStart: previous == nil || previous == 0x0A
    case .lineEnd: next == nil || next == 0x0A
    case .wordBoundary: Self.isWord(previous) != Self.isWord(next)
    case .notWordBoundary: Self.isWord(previous) == Self.isWord(next)
    }
  }

  private static func isWord(_ unit: UInt32?) -> Bool {
    switch unit {
    case .some(0x30...0x39), .some(0x41...0x5A), .some(0x61...0x7A), .some(0x5F): true
    default: false
    }
  }
}
