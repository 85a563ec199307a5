// Compiles a rules file of the Realtime Database. If any expression has a mistake, the compiler rejects the file and
// reports all mistakes.
//
// Invariant: compiled rules never change. Their size is bounded by the size of the file, and by a limit on compiled
// regular expressions, whose counted repetitions expand.

package import RealtimeModel

/// The compiled rules of a Realtime Database.
package struct RealtimeRuleset: Sendable {
  /// The limit on the regular expressions of one file, in instructions. They take about 30 bytes each.
  static let maximumPatternInstructions = 300_000

  /// The rules file.
  package let file: RulesFile
  let root: RealtimeRuleNode
  /// The marked expressions.
  let marks: [RealtimeMark]
  /// The rules in the order of the file, if expressions are marked.
  let rulesInFileOrder: [RealtimeRule]
  /// Explains decisions by this ruleset and records its coverage.
  package let inspection: RealtimeInspection

  /// Compiles a rules file.
  ///
  /// - Throws: ``RealtimeModel/RulesError`` with all problems of the structure and the expressions.
  package init(_ bytes: [UInt8]) throws(RealtimeModel.RulesError) { try self.init(bytes, marks: nil) }

  /// Compiles a rules file whose expressions record their values.
  ///
  /// - Throws: ``RealtimeModel/RulesError`` with all problems of the structure and the expressions.
  init(marking text: String) throws(RealtimeModel.RulesError) {
    try self.init(Array(text.utf8), marks: RealtimeMarks(text))
  }

  private init(_ bytes: [UInt8], marks: RealtimeMarks?) throws(RealtimeModel.RulesError) {
    let compiler = RealtimeCompiler(marks)
    file = try RulesFile(bytes) { compiler.add($0) }
    root = RealtimeRuleNode(file.root, compiler.root)
    self.marks = marks?.marks ?? []
    rulesInFileOrder = compiler.rulesInFileOrder
    inspection = RealtimeInspection(file.text)
  }

  /// Whether the rules permit all reads and writes, so that evaluating them has no effect.
  package var isOpen: Bool {
    (root.read?.condition.isTrue ?? false) && (root.write?.condition.isTrue ?? false) && !root.hasValidation
  }
}

/// Collects the rules of a file while it is read.
fileprivate final class RealtimeCompiler {
  /// The compiled rules at and below a location. Locations without rules have no draft.
  final class Draft {
    var rules: [RuleSite.Kind: RealtimeRule] = [:]
    var children: [ChildKey: Draft] = [:]
    var wildcard: Draft?
  }

  let root: Draft
  /// The path of the last rule, and the drafts of the root and of each location on that path.
  private var path: [String] = []
  private var drafts: [Draft]
  private var patternInstructions = 0
  private let marks: RealtimeMarks?
  /// The rules in the order of the file, if expressions are marked.
  private(set) var rulesInFileOrder: [RealtimeRule] = []

  init(_ marks: RealtimeMarks?) {
    self.marks = marks
    root = Draft()
    drafts = [root]
  }

  /// Compiles a rule and adds it to the draft of its location.
  /// - Returns: the mistake in the rule; nil if there is none.
  func add(_ site: RuleSite) -> RuleMistake? {
    let condition: RealtimeRule.Condition
    marks?.beginRule(site)
    switch site.rule {
    case .constant(let value): condition = .constant(value)
    case .expression(let text):
      let checker = RealtimeChecker(
        wildcards: site.path.filter { $0.utf8.first == UInt8(ascii: "$") }, isWrite: site.kind != .read,
        marks: marks)
      do throws(RealtimeFault) {
        condition = .expression(try checker.check(text, patternInstructions: &patternInstructions))
      } catch { return RuleMistake(offset: error.offset, message: error.message) }
      guard patternInstructions <= RealtimeRuleset.maximumPatternInstructions else {
        return RuleMistake(offset: 0, message: "The regular expressions of the rules are too large.")
      }
    }
    let rule = RealtimeRule(
      condition: condition, kind: site.kind, line: site.line, column: site.column,
      wildcardDepths: site.path.indices.filter { site.path[$0].utf8.first == UInt8(ascii: "$") },
      marks: marks?.rangeOfCurrentRule ?? 0..<0)
    draft(at: site.path).rules[site.kind] = rule
    if marks != nil { rulesInFileOrder.append(rule) }
    return nil
  }

  /// Finds the draft of a location. Successive rules have most of their path in common.
  private func draft(at path: [String]) -> Draft {
    let common = zip(path, self.path).prefix { TextOrder.equal($0, $1) }.count
    drafts.removeLast(self.path.count - common)
    for name in path[common...] {
      let isWildcard = name.utf8.first == UInt8(ascii: "$")
      let key = ChildKey(name)
      let parent = drafts[drafts.count - 1]
      let draft = (isWildcard ? parent.wildcard : parent.children[key]) ?? Draft()
      if isWildcard { parent.wildcard = draft } else { parent.children[key] = draft }
      drafts.append(draft)
    }
    self.path = path
    return drafts[drafts.count - 1]
  }
}

extension RealtimeRuleNode {
  /// Joins the structure of a file and its compiled rules. A location that the file names without rules also has a
  /// node, so that no wildcard applies to it.
  fileprivate convenience init(_ node: RuleNode, _ draft: RealtimeCompiler.Draft?) {
    var children: [ChildKey: RealtimeRuleNode] = [:]
    for (key, child) in node.children { children[key] = RealtimeRuleNode(child, draft?.children[key]) }
    self.init(
      read: draft?.rules[.read], write: draft?.rules[.write], validate: draft?.rules[.validate],
      children: children, wildcard: node.wildcard.map { RealtimeRuleNode($0.node, draft?.wildcard) })
  }
}
