// Tests the matcher of regular expressions: compares it with backtracking on random patterns, and measures its costs.

import RandomModels
import SecurityRules
import Testing

@Suite("Matching of regular expressions", .timeLimit(.minutes(1)))
struct PatternTests {
  private static let ampleSteps = 1 << 40

  private func units(_ text: String) -> [UInt32] { text.utf16.map(UInt32.init) }

  private func randomNode(_ random: inout SeededGenerator, depth: Int) -> PatternNode {
    switch random.below(depth == 0 ? 3 : 8) {
    case 0: return .set(UnitSet(0x61))
    case 1: return .set(UnitSet([0x61...0x62]))
    case 2:
      return [.empty, .set(UnitSet(0x62)), .assertion(.textStart), .assertion(.textEnd)][random.below(4)]
    case 3: return .alternation((0..<1 + random.below(3)).map { _ in randomNode(&random, depth: depth - 1) })
    case 4, 5:
      return .concatenation((0..<random.below(4)).map { _ in randomNode(&random, depth: depth - 1) })
    case 6: return .group(randomNode(&random, depth: depth - 1), number: 1)
    default:
      let minimum = random.below(3)
      return .repetition(
        randomNode(&random, depth: depth - 1), minimum: minimum,
        maximum: random.below(2) == 0 ? nil : minimum + random.below(3), isGreedy: random.below(3) > 0)
    }
  }

  @Test("A random pattern has the same first match as with backtracking")
  func agreesWithBacktracking() throws {
    var random = SeededGenerator(seed: 11)
    var matched = 0
    for _ in 0..<6_000 {
      let node = randomNode(&random, depth: 3)
      let pattern = try Pattern(node)
      for _ in 0..<3 {
        let text = (0..<random.below(6)).map { _ in UInt32(0x61 + random.below(3)) }
        let expected = BacktrackingMatcher(text: text).firstMatch(of: node)
        var budget = PatternBudget(steps: Self.ampleSteps)
        let match = try pattern.firstMatch(in: text, budget: &budget)
        #expect(match.flatMap { $0[0] } == expected, "\(node) in \(text)")
        #expect(try pattern.matches(in: text, budget: &budget) == (expected != nil))
        if expected != nil { matched += 1 }
      }
    }
    #expect(matched > 1_000, "\(matched)")
  }

  @Test(
    "Nested repetitions take steps in proportion to the text",
    arguments: [
      "^(a*)*b$", "^(a+)+$", "(x+x+)+y", "^([a-z]+)*[0-9]$", "(a|aa)+$", "^(a|a|a)*$", "(.*)(.*)(.*)b",
    ])
  func linear(text: String) throws {
    let pattern = try RealtimePattern.compile(text, ignoresCase: false)
    func steps(_ count: Int) throws -> Int {
      var budget = PatternBudget(steps: Self.ampleSteps)
      _ = try pattern.matches(in: Array(repeating: UInt32(0x61), count: count) + [0x21], budget: &budget)
      return Self.ampleSteps - budget.steps
    }
    let (small, large) = (try steps(500), try steps(5_000))
    #expect(large <= small * 11)
    #expect(large <= 5_002 * (2 * pattern.instructionCount + 1))
  }

  @Test("A match stops when its budget is spent")
  func budget() throws {
    let pattern = try RealtimePattern.compile("a*b", ignoresCase: false)
    let text = Array(repeating: UInt32(0x61), count: 10_000)
    var budget = PatternBudget(steps: 5_000)
    #expect(throws: PatternBudget.Exhausted()) { try pattern.matches(in: text, budget: &budget) }
    #expect(budget.steps == 0)
  }

  @Test("A counted repetition that expands beyond the limit is rejected in bounded time")
  func expansion() {
    for text in ["(((a{1000}){1000}){1000}){1000}", "((a{0,1000}){0,1000}){1000}", "(a{1000}){20}"] {
      #expect(throws: PatternError.tooLarge) { try RealtimePattern.compile(text, ignoresCase: false) }
    }
    let nothing = PatternNode.repetition(
      .repetition(
        .repetition(.empty, minimum: 1_000_000, maximum: nil, isGreedy: true), minimum: 1_000_000,
        maximum: 2_000_000, isGreedy: true), minimum: 1_000_000, maximum: nil, isGreedy: true)
    #expect(throws: Never.self) { try Pattern(nothing) }
    var nested = PatternNode.set(UnitSet(0x61))
    for _ in 0..<50 { nested = .repetition(nested, minimum: 1, maximum: nil, isGreedy: true) }
    #expect(throws: Never.self) { try Pattern(nested) }
  }

  @Test("Groups record the range of their last iteration")
  func groups() throws {
    // (a(b)?)+c, as a parser with capturing groups produces it
    let node = PatternNode.concatenation([
      .repetition(
        .group(
          .concatenation([
            .set(UnitSet(0x61)),
            .repetition(.group(.set(UnitSet(0x62)), number: 2), minimum: 0, maximum: 1, isGreedy: true),
          ]), number: 1), minimum: 1, maximum: nil, isGreedy: true),
      .set(UnitSet(0x63)),
    ])
    let pattern = try Pattern(node)
    var budget = PatternBudget(steps: Self.ampleSteps)
    #expect(pattern.groupCount == 2)
    #expect(try pattern.firstMatch(in: units("xabac"), budget: &budget) == [1..<5, 3..<4, 2..<3])
    #expect(try pattern.firstMatch(in: units("ac"), budget: &budget) == [0..<2, 0..<1, nil])
    #expect(try pattern.firstMatch(in: units("ab"), budget: &budget) == nil)
  }

  @Test("An assertion such as a word boundary reads the code unit before the start of a search")
  func assertions() throws {
    var budget = PatternBudget(steps: Self.ampleSteps)
    let word = try Pattern(.concatenation([.assertion(.wordBoundary), .set(UnitSet(0x61))]))
    #expect(try word.firstMatch(in: units("a a"), after: 0x61, budget: &budget) == [2..<3])
    let line = try Pattern(.concatenation([.assertion(.lineStart), .set(UnitSet(0x61))]))
    #expect(try line.firstMatch(in: units("a"), after: 0x0A, budget: &budget) == [0..<1])
    #expect(try line.firstMatch(in: units("a"), after: 0x20, budget: &budget) == nil)
    let start = try Pattern(.concatenation([.assertion(.textStart), .set(UnitSet(0x61))]))
    #expect(try start.firstMatch(in: units("a"), after: 0x20, budget: &budget) == nil)
    let inner = try Pattern(.concatenation([.assertion(.notWordBoundary), .set(UnitSet(0x61))]))
    #expect(try inner.firstMatch(in: units("aa"), budget: &budget) == [1..<2])
  }

  @Test("A character set contains exactly its ranges, an inverted set everything else")
  func sets() {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<500 {
      let ranges = (0..<random.below(6)).map { _ in
        let lower = UInt32(random.below(300))
        return lower...lower + UInt32(random.below(40))
      }
      let set = UnitSet(ranges)
      let inverted = set.inverted(upTo: 400)
      for unit in UInt32(0)...400 {
        let isMember = ranges.contains { $0.contains(unit) }
        #expect(set.contains(unit) == isMember && inverted.contains(unit) == !isMember)
      }
      #expect(inverted.inverted(upTo: 400) == set)
    }
  }
}
