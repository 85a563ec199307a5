// Findings of the linter: positions of valid rules that probably allow more, or less, than their author expects.

/// A position of a rules file that its author should check.
package struct RuleFinding: Sendable, Hashable, Comparable {
  /// The line, from 1; 0 for the complete file.
  package var line: Int
  /// The column, from 1; 0 for the complete file.
  package var column: Int
  /// The finding, a sentence.
  package var text: String

  /// Makes a finding.
  package init(line: Int, column: Int, text: String) {
    self.line = line
    self.column = column
    self.text = text
  }

  init(_ position: SourcePosition, _ text: String) {
    self.init(line: position.line, column: position.column, text: text)
  }

  /// By position, then by text.
  package static func < (left: RuleFinding, right: RuleFinding) -> Bool {
    (left.line, left.column, left.text) < (right.line, right.column, right.text)
  }

  /// `line:column: text`.
  package var report: String { line == 0 ? text : "\(line):\(column): \(text)" }
}

/// The callers to whom a condition grants access, from everyone to nobody.
enum RuleOpenness: Int, Comparable {
  case everyone
  /// Everyone, until a time that the condition states.
  case everyoneUntil
  case signedIn
  /// The callers that a condition on data or claims selects.
  case selected
  case nobody

  static func < (left: RuleOpenness, right: RuleOpenness) -> Bool { left.rawValue < right.rawValue }

  /// A sentence about too much openness; nil for access that a condition restricts.
  func warning(_ action: String) -> String? {
    switch self {
    case .everyone: "Everyone may \(action), also without signing in."
    case .everyoneUntil: "Everyone may \(action) until a time passes: these are rules for tests."
    case .signedIn: "Any signed-in user may \(action). Anyone can sign in if the project permits sign-ups."
    case .selected, .nobody: nil
    }
  }
}

extension TestedRules {
  /// Checks a rules file for mistakes that a compiler accepts.
  /// - Returns: the compiler's warnings and the findings, by position.
  package func lint() -> [RuleFinding] {
    switch self {
    case .firestore(let ruleset): FirestoreLinter.findings(ruleset)
    case .realtime(let ruleset): RealtimeLinter.findings(ruleset.file)
    }
  }
}
