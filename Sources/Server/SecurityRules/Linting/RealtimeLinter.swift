// Finds rules of the Realtime Database that grant access to everyone or to every user, have no effect, or do not check
// written data.

import RealtimeModel

/// Checks a rules file of the Realtime Database.
struct RealtimeLinter {
  /// A rule with its parsed expression.
  private struct Rule {
    let site: RuleSite
    /// The expression; nil for a constant.
    let syntax: RealtimeSyntax?

    var openness: RuleOpenness {
      if case .constant(let value) = site.rule { return value ? .everyone : .nobody }
      return syntax.map(RealtimeLinter.openness) ?? .selected
    }

    /// The location, for messages.
    var location: String { "/" + site.path.joined(separator: "/") }
  }

  private let file: RulesFile
  private let rules: [Rule]
  private var found: Set<RuleFinding> = []

  private init(_ file: RulesFile) {
    self.file = file
    var rules: [Rule] = []
    _ = try? RulesFile(Array(file.text.utf8)) { site in
      var instructions = 0
      var syntax: RealtimeSyntax?
      if case .expression(let text) = site.rule {
        syntax = try? RealtimeParser.parse(text, patternInstructions: &instructions)
      }
      rules.append(Rule(site: site, syntax: syntax))
      return nil
    }
    self.rules = rules
  }

  /// The findings about a valid file, by position.
  static func findings(_ file: RulesFile) -> [RuleFinding] {
    var linter = RealtimeLinter(file)
    for rule in linter.rules {
      switch rule.site.kind {
      case .read, .write:
        linter.checkOpenness(rule)
        linter.checkCascade(rule)
        if rule.site.kind == .write { linter.checkValidation(rule) } else { linter.checkQuery(rule) }
      case .validate: linter.checkStrings(rule)
      }
    }
    return linter.found.sorted()
  }

  private mutating func add(_ rule: Rule, _ text: String) {
    found.insert(RuleFinding(line: rule.site.line, column: rule.site.column, text: text))
  }

  // MARK: Checks

  private mutating func checkOpenness(_ rule: Rule) {
    let action = rule.site.kind == .read ? "read \(rule.location)" : "write \(rule.location)"
    if let warning = rule.openness.warning(action) { add(rule, warning) }
  }

  /// Finds rules that restrict nothing, because a rule above them grants access to more callers.
  private mutating func checkCascade(_ rule: Rule) {
    let path = rule.site.path
    let above = rules.filter {
      $0.site.kind == rule.site.kind && $0.site.path.count < path.count && path.starts(with: $0.site.path)
    }
    guard let widest = above.min(by: { $0.openness < $1.openness }), widest.openness <= .signedIn,
      widest.openness < rule.openness
    else { return }
    add(
      rule,
      "This \(rule.site.kind.rawValue) restricts nothing: that of \(widest.location) in line \(widest.site.line) grants "
        + "the access before, and rules cascade.")
  }

  /// Finds `.write` rules without a `.validate` at, above or below their location.
  private mutating func checkValidation(_ rule: Rule) {
    guard rule.openness != .nobody else { return }
    let path = rule.site.path
    let isValidated = rules.contains {
      $0.site.kind == .validate && ($0.site.path.starts(with: path) || path.starts(with: $0.site.path))
    }
    let checksData = rule.syntax.map { Self.uses($0, "newData") } ?? false
    if !isValidated, !checksData {
      add(rule, "No rule checks the data that is written to \(rule.location): add '.validate'.")
    }
  }

  private mutating func checkStrings(_ rule: Rule) {
    guard let syntax = rule.syntax else { return }
    var texts: Set<String> = []
    var bounded: Set<String> = []
    Self.forEach(syntax) { part in
      switch part.kind {
      case .call(let callee, _):
        guard case .member(let base, let name) = callee.kind, let text = Self.text(base) else { return }
        if name == "isString" { texts.insert(text) }
        if name == "matches", text.hasSuffix(".val()") { bounded.insert(String(text.dropLast(6))) }
      case .member(let base, "length"):
        if let text = Self.text(base), text.hasSuffix(".val()") { bounded.insert(String(text.dropLast(6))) }
      case .chain(let first, let steps):
        for side in [first] + steps.map(\.operand) where steps.contains(where: { $0.operation == .equal }) {
          if let text = Self.text(side), text.hasSuffix(".val()") { bounded.insert(String(text.dropLast(6))) }
        }
      default: break
      }
    }
    for text in texts.subtracting(bounded) where text.hasPrefix("newData") {
      add(
        rule,
        "The size of the string '\(text)' has no bound: a client may write up to 10 MB. Compare \(text).val().length."
      )
    }
  }

  /// Finds read rules that require an order by a child that has no index.
  private mutating func checkQuery(_ rule: Rule) {
    guard let syntax = rule.syntax else { return }
    var orders: [String] = []
    Self.forEach(syntax) { part in
      guard case .chain(let first, let steps) = part.kind, steps.count == 1, steps[0].operation == .equal
      else { return }
      for (side, other) in [(first, steps[0].operand), (steps[0].operand, first)] {
        if Self.text(side) == "query.orderByChild", case .string(let name) = other.kind {
          orders.append(name)
        }
      }
    }
    var node: RuleNode? = file.root
    for name in rule.site.path {
      node = name.hasPrefix("$") ? node?.wildcard?.node : node?.children[ChildKey(name)]
    }
    for order in orders where !(node?.indexes.contains(.child(Path(order))) ?? false) {
      add(
        rule,
        "No query can be allowed here: the rule demands the order by '\(order)', which has no '.indexOn' at \(rule.location)."
      )
    }
  }

  // MARK: Expressions

  private static func openness(_ syntax: RealtimeSyntax) -> RuleOpenness {
    switch syntax.kind {
    case .bool(let value): return value ? .everyone : .nobody
    case .all(let parts): return parts.map(openness).max() ?? .selected
    case .any(let parts): return parts.map(openness).min() ?? .selected
    case .chain(let first, let steps):
      guard steps.count == 1 else { return .selected }
      let (operation, second) = (steps[0].operation, steps[0].operand)
      if isNull(first) && isCaller(second) || isCaller(first) && isNull(second) {
        // `auth == null` is open to everyone, because every client can send its requests without credentials.
        return operation == .unequal ? .signedIn : operation == .equal ? .everyone : .selected
      }
      let isEarlier = [.less, .lessOrEqual].contains(operation) && text(first) == "now" && isNumber(second)
      let isLater =
        [.greater, .greaterOrEqual].contains(operation) && text(second) == "now" && isNumber(first)
      return isEarlier || isLater ? .everyoneUntil : .selected
    default: return .selected
    }
  }

  private static func isNull(_ syntax: RealtimeSyntax) -> Bool {
    if case .null = syntax.kind { return true }
    return false
  }

  private static func isNumber(_ syntax: RealtimeSyntax) -> Bool {
    if case .number = syntax.kind { return true }
    return false
  }

  private static func isCaller(_ syntax: RealtimeSyntax) -> Bool {
    ["auth", "auth.uid", "auth.token"].contains(text(syntax))
  }

  /// A variable with its members and calls, such as `newData.child('a').val()`; nil for another expression.
  private static func text(_ syntax: RealtimeSyntax) -> String? {
    switch syntax.kind {
    case .name(let name), .wildcard(let name): return name
    case .string(let value): return "'\(value)'"
    case .member(let base, let name): return text(base).map { "\($0).\(name)" }
    case .call(let callee, let arguments):
      guard let function = text(callee) else { return nil }
      var texts: [String] = []
      for argument in arguments {
        guard let text = text(argument) else { return nil }
        texts.append(text)
      }
      return "\(function)(\(texts.joined(separator: ", ")))"
    default: return nil
    }
  }

  private static func uses(_ syntax: RealtimeSyntax, _ variable: String) -> Bool {
    var isUsed = false
    forEach(syntax) { if case .name(variable) = $0.kind { isUsed = true } }
    return isUsed
  }

  /// Calls `body` with an expression and all expressions inside it.
  private static func forEach(_ root: RealtimeSyntax, _ body: (RealtimeSyntax) -> Void) {
    var stack = [root]
    while let syntax = stack.popLast() {
      body(syntax)
      switch syntax.kind {
      case .null, .bool, .number, .string, .pattern, .name, .wildcard: break
      case .member(let base, _), .not(let base), .negative(let base): stack.append(base)
      case .element(let base, let key): stack += [base, key]
      case .call(let callee, let arguments): stack += [callee] + arguments
      case .list(let parts), .all(let parts), .any(let parts): stack += parts
      case .chain(let first, let steps): stack += [first] + steps.map(\.operand)
      case .conditional(let condition, let then, let otherwise): stack += [condition, then, otherwise]
      }
    }
  }
}
