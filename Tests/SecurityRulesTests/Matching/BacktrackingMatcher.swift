// A backtracking matcher, with which tests compare the real one. It tries all paths through the syntax tree in order of
// preference, in exponential time.

import SecurityRules

/// Matches a syntax tree by backtracking.
struct BacktrackingMatcher {
  let text: [UInt32]

  /// The range of the preferred match; nil if there is none.
  func firstMatch(of node: PatternNode) -> Range<Int>? {
    for start in 0...text.count {
      var end: Int?
      let isMatch = match(node, at: start) {
        end = $0
        return true
      }
      if isMatch, let end { return start..<end }
    }
    return nil
  }

  private func match(_ node: PatternNode, at offset: Int, then: (Int) -> Bool) -> Bool {
    switch node {
    case .empty: return then(offset)
    case .set(let set): return offset < text.count && set.contains(text[offset]) && then(offset + 1)
    case .assertion(.textStart): return offset == 0 && then(offset)
    case .assertion(.textEnd): return offset == text.count && then(offset)
    case .assertion: return false
    case .concatenation(let nodes): return match(nodes[...], at: offset, then: then)
    case .alternation(let nodes): return nodes.contains { match($0, at: offset, then: then) }
    case .group(let node, _): return match(node, at: offset, then: then)
    case .repetition(let node, let minimum, let maximum, let isGreedy):
      return repeated(node, minimum, maximum, isGreedy, at: offset, then: then)
    }
  }

  private func match(_ nodes: ArraySlice<PatternNode>, at offset: Int, then: (Int) -> Bool) -> Bool {
    guard let first = nodes.first else { return then(offset) }
    return match(first, at: offset) { match(nodes.dropFirst(), at: $0, then: then) }
  }

  private func repeated(
    _ node: PatternNode, _ minimum: Int, _ maximum: Int?, _ isGreedy: Bool, at offset: Int,
    then: (Int) -> Bool
  ) -> Bool {
    func matchIteration() -> Bool {
      guard maximum != 0 else { return false }
      return match(node, at: offset) { end in
        // An iteration of the empty text ends an unbounded loop.
        if end == offset, minimum == 0, maximum == nil { return then(end) }
        return repeated(node, max(0, minimum - 1), maximum.map { $0 - 1 }, isGreedy, at: end, then: then)
      }
    }
    if minimum > 0 { return matchIteration() }
    return isGreedy ? matchIteration() || then(offset) : then(offset) || matchIteration()
  }
}
