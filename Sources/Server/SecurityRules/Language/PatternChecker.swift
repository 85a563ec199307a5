/// Checks the patterns of match blocks: `**` wildcards, repeated names, and the limits on depth, segments and wildcards.
struct PatternChecker {
  private let tree: SyntaxTree
  /// The findings.
  private(set) var issues: [RulesIssue] = []

  /// Maximum nested blocks below the outermost one.
  static let maximumDepth = 10
  /// Maximum segments of a concatenated pattern.
  static let maximumSegments = 100
  /// Maximum wildcards of a concatenated pattern.
  static let maximumWildcards = 20

  init(_ tree: SyntaxTree) { self.tree = tree }

  /// Checks all blocks.
  mutating func check() {
    for service in tree.services {
      for match in service.matches { check(match, depth: 0, segments: []) }
    }
  }

  private mutating func error(_ position: SourcePosition, _ text: String) {
    issues.append(RulesIssue(.error, at: position, text))
  }

  private mutating func check(
    _ match: SyntaxTree.Match, depth: Int, segments outer: [SyntaxTree.PatternSegment]
  ) {
    if depth > Self.maximumDepth {
      return error(
        match.position, "Maximum allowed resource rule depth of \(Self.maximumDepth) is reached.")
    }
    let segments = outer + match.pattern
    if segments.count > Self.maximumSegments {
      return error(match.position, "Maximum allowed path length of \(Self.maximumSegments) is reached.")
    }
    if segments.count(where: { $0.name != nil }) > Self.maximumWildcards {
      return error(
        match.position, "Maximum allowed amount of \(Self.maximumWildcards) match field variables is reached."
      )
    }
    checkRests(match, outer: outer)
    var names = Set<String>()
    for segment in match.pattern {
      if let name = segment.name, !names.insert(name).inserted {
        error(segment.position, "Variable \(name) already exists in the PathTemplate.")
      }
    }
    for inner in match.matches { check(inner, depth: depth + 1, segments: segments) }
  }

  private mutating func checkRests(_ match: SyntaxTree.Match, outer: [SyntaxTree.PatternSegment]) {
    func isRest(_ segment: SyntaxTree.PatternSegment) -> Bool {
      if case .rest = segment.kind { true } else { false }
    }
    switch tree.version {
    case .one:
      if match.pattern.dropLast().contains(where: isRest) {
        error(
          match.patternPosition,
          "Invalid glob match expression. Glob matches are permitted as the last segment in a match declaration path."
        )
      }
      if match.pattern.last.map(isRest) == true, !match.matches.isEmpty {
        issues.append(
          RulesIssue(
            .warning, at: match.position, "Glob(**) resource rules should not have child resource rules."))
      }
    case .two:
      if match.pattern.contains(where: isRest), (outer + match.pattern).count(where: isRest) > 1 {
        error(
          match.patternPosition,
          "Invalid glob match expression. Only one glob match is permitted in a match declaration path.")
      }
    }
  }
}
