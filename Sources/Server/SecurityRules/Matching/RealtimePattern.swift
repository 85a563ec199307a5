// Parses the regular expressions of Realtime Database rules, a subset of JavaScript's.
//
//   pattern := [ "^" ] union [ "$" ]            union  := sequence { "|" sequence }
//   sequence := repeated { repeated }           repeated := atom [ "*" | "+" | "?" | "{" n [ "," [ m ] ] "}" ]
//   atom := "(" union ")" | set | "." | "\" unit | unit
//
// Three rules are as in the hosted service. A special character at the start of the pattern or of a group is literal.
// An escape other than \s \S \w \W \d \D is the character itself. `^` belongs to the first alternative, and `$` to the
// last. Two forms that the service reads differently from JavaScript are errors here: `(?`, and a quantifier after a
// quantifier.

/// Parses one regular expression.
package struct RealtimePattern {
  /// The largest number in a counted repetition.
  package static let maximumRepetition = 1000
  /// The deepest nesting of groups.
  package static let maximumLevels = 100

  private let units: [UInt16]
  private let ignoresCase: Bool
  private var offset = 0
  private var levels = 0

  /// Compiles the text between the slashes of a literal.
  ///
  /// - Throws: ``PatternError`` with the offset in UTF-16 code units.
  package static func compile(_ text: String, ignoresCase: Bool) throws(PatternError) -> Pattern {
    var parser = RealtimePattern(units: Array(text.utf16), ignoresCase: ignoresCase)
    return try Pattern(try parser.readPattern())
  }

  private init(units: [UInt16], ignoresCase: Bool) {
    self.units = units
    self.ignoresCase = ignoresCase
  }

  private func unit(_ ahead: Int = 0) -> UInt16? {
    offset + ahead < units.count ? units[offset + ahead] : nil
  }

  private func isNext(_ character: Unicode.Scalar, _ ahead: Int = 0) -> Bool {
    unit(ahead) == UInt16(truncatingIfNeeded: character.value)
  }

  private mutating func accept(_ character: Unicode.Scalar) -> Bool {
    guard isNext(character) else { return false }
    offset += 1
    return true
  }

  private func error(_ message: String) -> PatternError { .syntax(offset: offset, message: message) }

  // MARK: Structure

  private mutating func readPattern() throws(PatternError) -> PatternNode {
    guard !units.isEmpty else { throw error("it is empty") }
    let isAnchored = accept("^")
    var branches = try readBranches(isFirst: !isAnchored)
    guard unit() == nil || isNext("$") else { throw error("a ')' without its '('") }
    if isAnchored { branches[0] = .concatenation([.assertion(.textStart), branches[0]]) }
    if accept("$") {
      guard unit() == nil else { throw error("a '$' may stand at the very end only") }
      branches.append(.concatenation([branches.removeLast(), .assertion(.textEnd)]))
    }
    return branches.count == 1 ? branches[0] : .alternation(branches)
  }

  /// Reads alternatives up to the end of the pattern or group, at least one.
  ///
  /// - Parameter isFirst: whether a special character here is literal.
  private mutating func readBranches(isFirst: Bool) throws(PatternError) -> [PatternNode] {
    var branches = [try readSequence(isFirst: isFirst)]
    while accept("|") { branches.append(try readSequence(isFirst: false)) }
    return branches
  }

  private static let literalAtStart: Set<UInt16> = Set("|?+*{".utf16)

  private mutating func readSequence(isFirst: Bool) throws(PatternError) -> PatternNode {
    var nodes: [PatternNode] = []
    var literalCount = 0
    if isFirst, let unit = unit(), Self.literalAtStart.contains(unit) {
      offset += 1
      literalCount = 1
      nodes.append(.set(set(of: unit)))
    }
    while let unit = unit(), !isNext("|"), !isNext(")"), !isNext("$") { nodes.append(try readRepeated(unit)) }
    // An expression must follow a literal at the start: `|` and `(*)` are errors.
    guard nodes.count > literalCount else { throw error("an alternative is empty") }
    return nodes.count == 1 ? nodes[0] : .concatenation(nodes)
  }

  private mutating func readRepeated(_ unit: UInt16) throws(PatternError) -> PatternNode {
    let atom = try readAtom(unit)
    guard let (minimum, maximum) = try readQuantifier() else { return atom }
    if isNext("*") || isNext("+") || isNext("?") || isNext("{") {
      throw error("a quantifier may not follow a quantifier")
    }
    return .repetition(atom, minimum: minimum, maximum: maximum, isGreedy: true)
  }

  private mutating func readAtom(_ unit: UInt16) throws(PatternError) -> PatternNode {
    switch Unicode.Scalar(unit) ?? "\u{FFFD}" {
    case "(": return try readGroup()
    case "[": return .set(try readSet())
    case ".":
      offset += 1
      return .set(RealtimePatternSets.dot)
    case "\\":
      offset += 1
      return .set(try readEscape())
    case "^": throw error("a '^' may stand at the very start only")
    case "*", "+", "?", "{": throw error("a quantifier without an expression before it")
    case "\n", "\r", "\u{2028}", "\u{2029}": throw error("a line break")
    default:
      offset += 1
      return .set(set(of: unit))
    }
  }

  private mutating func readGroup() throws(PatternError) -> PatternNode {
    guard levels < Self.maximumLevels else {
      throw error("groups may lie at most \(Self.maximumLevels) levels deep")
    }
    let start = offset
    offset += 1
    if isNext("?") { throw error("'(?' is not supported") }
    levels += 1
    let branches = try readBranches(isFirst: true)
    levels -= 1
    if isNext("$") { throw error("a '$' may stand at the very end only") }
    guard accept(")") else { throw .syntax(offset: start, message: "a '(' without its ')'") }
    return branches.count == 1 ? branches[0] : .alternation(branches)
  }

  // MARK: Quantifiers

  private mutating func readQuantifier() throws(PatternError) -> (Int, Int?)? {
    if accept("*") { return (0, nil) }
    if accept("+") { return (1, nil) }
    if accept("?") { return (0, 1) }
    let start = offset
    guard accept("{") else { return nil }
    let malformed = PatternError.syntax(offset: start, message: "a quantifier is {n}, {n,} or {n,m}")
    guard let minimum = readNumber() else { throw malformed }
    var maximum: Int? = minimum
    if accept(",") { maximum = isNext("}") ? nil : readNumber() ?? -1 }
    guard accept("}"), maximum ?? minimum >= minimum else { throw malformed }
    guard max(minimum, maximum ?? 0) <= Self.maximumRepetition else {
      throw .syntax(offset: start, message: "a repetition of more than \(Self.maximumRepetition) times")
    }
    return (minimum, maximum)
  }

  /// Reads a number without leading zeros; nil for anything else.
  private mutating func readNumber() -> Int? {
    if isNext("0") {
      offset += 1
      return 0
    }
    var value: Int?
    while let unit = unit(), (0x30...0x39).contains(unit) {
      // Digits beyond the limit do not matter.
      value = min((value ?? 0) * 10 + Int(unit - 0x30), 1 << 20)
      offset += 1
    }
    return value
  }

  // MARK: Sets

  private func set(of unit: UInt16) -> UnitSet {
    let set = UnitSet(UInt32(unit))
    return ignoresCase ? RealtimePatternSets.closedUnderCase(set) : set
  }

  private mutating func readEscape() throws(PatternError) -> UnitSet {
    guard let unit = unit() else { throw error("a '\\' at the end") }
    offset += 1
    return RealtimePatternSets.escape(unit) ?? set(of: unit)
  }

  private mutating func readSet() throws(PatternError) -> UnitSet {
    let start = offset
    offset += 1
    let isNegated = accept("^")
    if isNext("]") { throw error("a set is empty") }
    var ranges: [ClosedRange<UInt32>] = []
    while !accept("]") {
      guard let next = unit() else { throw .syntax(offset: start, message: "a '[' without its ']'") }
      if isNext("\\"), let escaped = unit(1), let set = RealtimePatternSets.escape(escaped) {
        offset += 2
        ranges += set.ranges
        continue
      }
      let first = try readSetUnit(next)
      guard isNext("-"), let last = unit(1), !isNext("]", 1) else {
        ranges.append(first...first)
        continue
      }
      let range = offset
      offset += 1
      let end = try readSetUnit(last)
      guard end >= first else { throw .syntax(offset: range, message: "a range ends before it starts") }
      ranges.append(first...end)
    }
    var set = UnitSet(ranges)
    if ignoresCase { set = RealtimePatternSets.closedUnderCase(set) }
    return isNegated ? set.inverted(upTo: RealtimePatternSets.maximumUnit) : set
  }

  private mutating func readSetUnit(_ unit: UInt16) throws(PatternError) -> UInt32 {
    offset += 1
    guard unit == UInt16(ascii: "\\") else { return UInt32(unit) }
    guard let escaped = self.unit() else { throw error("a '\\' at the end") }
    offset += 1
    return UInt32(escaped)
  }
}

extension UInt16 {
  /// The code unit of an ASCII character.
  init(ascii scalar: Unicode.Scalar) { self = UInt16(UInt8(ascii: scalar)) }
}
