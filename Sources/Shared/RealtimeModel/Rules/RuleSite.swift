/// The site of a rule in a rules file: its location, kind and position. The check of expressions receives it.
public struct RuleSite: Sendable, Hashable {
  /// The kind of a rule; the raw value is its name in the file.
  public enum Kind: String, Sendable, Hashable {
    /// Permits reads of the location and everything below it.
    case read = ".read"
    /// Permits writes to the location and everything below it.
    case write = ".write"
    /// Must be true for the value that the location has after a write.
    case validate = ".validate"
  }

  /// The names from the root down to the location; wildcards have their `$`.
  public let path: [String]
  /// The kind.
  public let kind: Kind
  /// The rule.
  public let rule: RuleNode.Rule
  /// The line of the rule's first character, from 1.
  public let line: Int
  /// The column of the rule's first character, from 1, in UTF-16 code units.
  public let column: Int

  /// Makes a site.
  public init(path: [String], kind: Kind, rule: RuleNode.Rule, line: Int, column: Int) {
    self.path = path
    self.kind = kind
    self.rule = rule
    self.line = line
    self.column = column
  }
}

/// A mistake in a rule's expression.
public struct RuleMistake: Sendable, Hashable {
  /// The position in the expression, in bytes of UTF-8.
  public let offset: Int
  /// The description, a sentence.
  public let message: String

  /// Makes a mistake.
  public init(offset: Int, message: String) {
    self.offset = offset
    self.message = message
  }
}

/// Checks the expression of a rule. Returns nil if it has no mistake.
public typealias RuleCheck = (RuleSite) -> RuleMistake?
