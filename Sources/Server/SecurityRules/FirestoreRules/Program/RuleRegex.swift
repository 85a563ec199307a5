/// A regular expression of a rule, compiled for the method that uses it.
package struct RuleRegex: Sendable {
  /// The compiled pattern, anchored at both ends for `matches`, and unanchored for `replace` and `split`.
  let pattern: Pattern

  /// Compiles a pattern in the syntax of RE2.
  ///
  /// - Throws: a fault with the pattern if it has an error or is too large.
  init(_ text: RuleText, for method: Method) throws(RuleFault) {
    do {
      pattern = try RE2Pattern.compile(text.string, matchesCompleteText: method == .matches)
    } catch {
      throw .invalidPattern(text.string)
    }
  }

  /// Compiles a pattern whose text is known only during an evaluation, and charges the work to its budget.
  init(_ text: RuleText, for method: Method, _ budget: inout RuleBudget) throws(RuleFault) {
    let result = try budget.runPattern { (steps) throws(PatternBudget.Exhausted) -> Pattern? in
      do throws(PatternError) {
        return try RE2Pattern.compile(text.string, matchesCompleteText: method == .matches, budget: &steps)
      } catch {
        if error == .exhausted { throw PatternBudget.Exhausted() }
        return nil
      }
    }
    guard let result else { throw .invalidPattern(text.string) }
    pattern = result
  }
}

extension RuleRegex {
  /// Whether the pattern matches the complete text. The pattern must be compiled for `matches`.
  func matches(_ text: String, _ budget: inout RuleBudget) throws(RuleFault) -> Bool {
    try budget.runPattern { (steps) throws(PatternBudget.Exhausted) in
      try pattern.matches(in: text.unicodeScalars.lazy.map(\.value), budget: &steps)
    }
  }

  /// The parts between the matches. Empty parts at the end are dropped, but one part always remains.
  func split(_ text: String, _ budget: inout RuleBudget) throws(RuleFault) -> [String] {
    try budget.spend(work: text.utf8.count * 2 * RuleCost.convertedByte)
    let units = text.unicodeScalars.map(\.value)
    var parts: [String] = []
    var start = 0
    for range in try allMatches(in: units, slotCount: 2, &budget).lazy.compactMap({ $0[0] }) {
      parts.append(Self.text(units[start..<range.lowerBound]))
      start = range.upperBound
    }
    parts.append(Self.text(units[start...]))
    while parts.count > 1, parts.last?.isEmpty == true { parts.removeLast() }
    return parts
  }

  /// The text with every match replaced. `$1` and `$0` stand for groups, and a backslash escapes the next character.
  ///
  /// - Throws: a fault for a group that the pattern does not have.
  func replace(in text: String, with template: String, _ budget: inout RuleBudget) throws(RuleFault) -> String
  {
    try budget.spend(work: (text.utf8.count + 8 * template.utf8.count) * 2 * RuleCost.convertedByte)
    let units = text.unicodeScalars.map(\.value)
    let parts = try templateParts(template)
    var result = ""
    var start = 0
    for groups in try allMatches(in: units, slotCount: pattern.slotCount, &budget) {
      guard let range = groups[0] else { continue }
      result += Self.text(units[start..<range.lowerBound])
      for part in parts {
        switch part {
        case .text(let text): result += text
        case .group(let number):
          guard let group = groups[number] else { continue }
          try budget.spend(work: group.count * 2 * RuleCost.convertedByte)
          result += Self.text(units[group])
        }
      }
      try budget.spend(work: template.utf8.count + parts.count * RuleCost.item)
      start = range.upperBound
    }
    return result + Self.text(units[start...])
  }

  /// All matches from the left. After an empty match the search resumes one code point later.
  private func allMatches(
    in units: [UInt32], slotCount: Int, _ budget: inout RuleBudget
  ) throws(RuleFault) -> [[Range<Int>?]] {
    var matcher = try budget.runPattern { (steps) throws(PatternBudget.Exhausted) in
      try PatternMatcher(pattern, slotCount: slotCount, budget: &steps)
    }
    var matches: [[Range<Int>?]] = []
    var start = 0
    while start <= units.count {
      let slots = try budget.runPattern { (steps) throws(PatternBudget.Exhausted) in
        try matcher.search(units[start...], after: start > 0 ? units[start - 1] : nil, budget: &steps)
      }
      guard let slots else { break }
      try budget.spend(work: RuleCost.match + RuleCost.item * slotCount)
      let groups = Pattern.ranges(of: slots)
      guard let range = groups[0] else { break }
      matches.append(groups.map { $0.map { ($0.lowerBound + start)..<($0.upperBound + start) } })
      start += range.isEmpty ? range.upperBound + 1 : range.upperBound
    }
    return matches
  }

  private enum TemplatePart {
    case text(String)
    case group(Int)
  }

  private func templateParts(_ template: String) throws(RuleFault) -> [TemplatePart] {
    var parts: [TemplatePart] = []
    var rest = Substring(template).unicodeScalars
    while let scalar = rest.popFirst() {
      switch scalar {
      case "\\":
        guard let next = rest.popFirst() else { throw .invalidPattern(template) }
        parts.append(.text(String(next)))
      case "$":
        guard let first = rest.first, var number = Self.digit(first) else { throw .invalidPattern(template) }
        rest.removeFirst()
        // Another digit belongs to the number only if the pattern has a group with the longer number.
        while let next = rest.first, let digit = Self.digit(next), number * 10 + digit <= pattern.groupCount {
          number = number * 10 + digit
          rest.removeFirst()
        }
        guard number <= pattern.groupCount else { throw .invalidPattern(template) }
        parts.append(.group(number))
      default: parts.append(.text(String(scalar)))
      }
    }
    return parts
  }

  private static func digit(_ scalar: Unicode.Scalar) -> Int? {
    ("0"..."9").contains(scalar) ? Int(scalar.value) - 0x30 : nil
  }

  private static func text(_ units: ArraySlice<UInt32>) -> String {
    var text = String.UnicodeScalarView()
    for unit in units { text.append(Unicode.Scalar(unit) ?? "\u{FFFD}") }
    return String(text)
  }
}
