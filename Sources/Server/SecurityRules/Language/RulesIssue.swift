/// A finding of the compiler about a rules file.
package struct RulesIssue: Hashable, Sendable {
  /// How serious a finding is.
  package enum Severity: String, Hashable, Sendable {
    /// The file is rejected.
    case error = "ERROR"
    /// The file is accepted, but the rule at this position probably differs from what its author expects.
    case warning = "WARNING"
  }

  /// The position; nil if the finding concerns the complete file.
  package var position: SourcePosition?
  /// How serious the finding is.
  package var severity: Severity
  /// The finding in words.
  package var text: String

  /// Makes a finding.
  package init(_ severity: Severity, at position: SourcePosition?, _ text: String) {
    self.position = position
    self.severity = severity
    self.text = text
  }
}

extension RulesIssue: Comparable {
  /// Findings without a position come first, then by line, column and text.
  package static func < (left: RulesIssue, right: RulesIssue) -> Bool {
    let first = left.position ?? SourcePosition(line: -1, column: -1)
    let second = right.position ?? SourcePosition(line: -1, column: -1)
    return first != second ? first < second : left.text < right.text
  }
}

/// A rules file that does not compile.
package struct RulesError: Error, Hashable, Sendable, CustomStringConvertible {
  /// All findings, warnings included, in order.
  package let issues: [RulesIssue]

  /// Makes an error of findings, which it sorts.
  package init(_ issues: [RulesIssue]) { self.issues = Array(Set(issues)).sorted() }

  /// One line for each finding: `L<line>:<column> <text>`.
  package var description: String {
    issues.map { issue in
      guard let position = issue.position else { return issue.text }
      return "L\(position.line):\(position.column) \(issue.text)"
    }.joined(separator: "\n")
  }
}
