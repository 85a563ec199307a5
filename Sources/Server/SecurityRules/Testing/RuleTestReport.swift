// Reports the results of a run of rule cases as text, and as a JUnit file, which build servers read.

/// The results of a run of cases.
package struct RuleTestReport: Sendable {
  /// The result of one case.
  package struct Result: Sendable, Hashable {
    /// The title of the case.
    package var name: String
    /// The expected verdict; nil if the case states none.
    package var expected: RuleVerdict?
    /// The verdict of the rules, and for a denial the reason.
    package var outcome: TestedRules.Outcome

    /// Whether the verdict is the expected one.
    package var hasPassed: Bool { expected == outcome.verdict }

    /// Why the case failed, in one line.
    package var failure: String {
      let verdict =
        "expected \(expected?.rawValue ?? "no verdict"), but the rules \(outcome.verdict.rawValue)"
      return outcome.reason.map { "\(verdict): \($0)" } ?? verdict
    }
  }

  /// The name of the file of cases.
  package var name: String
  /// The results, in the order of the cases.
  package var results: [Result]

  /// Decides all cases of a file.
  /// - Throws: ``RuleCaseError`` for a case that cannot be read, or that states no verdict.
  package init(_ name: String, _ file: RuleCaseFile, rules: TestedRules) throws(RuleCaseError) {
    self.name = name
    results = []
    for item in file.cases {
      guard item.expected != nil else { throw item.fault("'expect' is missing.") }
      results.append(
        Result(name: item.name, expected: item.expected, outcome: try rules.decide(item)))
    }
  }

  /// The cases whose verdict is not the expected one.
  package var failures: [Result] { results.filter { !$0.hasPassed } }

  /// The results as a JUnit file.
  package var junit: String {
    var lines = [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
      "<testsuites>",
      "  <testsuite name=\"\(Self.escape(name))\" tests=\"\(results.count)\" failures=\"\(failures.count)\">",
    ]
    for result in results {
      let open = "    <testcase classname=\"\(Self.escape(name))\" name=\"\(Self.escape(result.name))\""
      if result.hasPassed {
        lines.append(open + "/>")
      } else {
        lines += [
          open + ">", "      <failure message=\"\(Self.escape(result.failure))\"/>", "    </testcase>",
        ]
      }
    }
    lines += ["  </testsuite>", "</testsuites>", ""]
    return lines.joined(separator: "\n")
  }

  /// Escapes a string for an XML attribute. Characters that XML 1.0 does not have become U+FFFD.
  private static func escape(_ text: String) -> String {
    var escaped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;".unicodeScalars
      case "<": escaped += "&lt;".unicodeScalars
      case ">": escaped += "&gt;".unicodeScalars
      case "\"": escaped += "&quot;".unicodeScalars
      case "\n": escaped += "&#10;".unicodeScalars
      case "\t": escaped += "&#9;".unicodeScalars
      case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF:
        escaped.append("\u{FFFD}")
      default: escaped.append(scalar)
      }
    }
    return String(escaped)
  }
}

/// A case about which two rules files decide differently.
package struct RuleDifference: Sendable, Hashable {
  /// The title of the case.
  package var name: String
  /// The decision of the old rules.
  package var old: TestedRules.Outcome
  /// The decision of the new rules.
  package var new: TestedRules.Outcome

  /// Decides cases by two rules files.
  /// - Returns: the cases with different verdicts.
  /// - Throws: ``RuleCaseError`` for a case that cannot be read.
  package static func find(
    in cases: [RuleCase], old: TestedRules, new: TestedRules
  ) throws(RuleCaseError) -> [RuleDifference] {
    var differences: [RuleDifference] = []
    for item in cases {
      let (before, after) = (try old.decide(item), try new.decide(item))
      if before.verdict != after.verdict {
        differences.append(RuleDifference(name: item.name, old: before, new: after))
      }
    }
    return differences
  }
}
