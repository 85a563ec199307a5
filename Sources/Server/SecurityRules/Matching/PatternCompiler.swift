// Translates a syntax tree to instructions, by Thompson's construction.
//
// Invariant: every step of the translation appends an instruction or ends a loop, so that the limit on instructions
// bounds its time too.

/// Translates one syntax tree.
struct PatternCompiler {
  typealias Instruction = Pattern.Instruction

  private(set) var instructions: [Instruction] = []
  private(set) var sets: [UnitSet] = []
  private(set) var groupCount = 0
  private var setIndices: [UnitSet: Int32] = [:]
  private let maximumInstructions: Int
  /// The steps that remain.
  private(set) var budget: PatternBudget

  init(maximumInstructions: Int, budget: PatternBudget) {
    self.maximumInstructions = maximumInstructions
    self.budget = budget
  }

  private var position: Int32 { Int32(instructions.count) }

  mutating func emit(_ instruction: Instruction) throws(PatternError) {
    guard instructions.count < maximumInstructions else { throw .tooLarge }
    try spend(2)
    instructions.append(instruction)
  }

  private mutating func spend(_ count: Int) throws(PatternError) {
    do { try budget.spend(count) } catch { throw .exhausted }
  }

  mutating func append(_ node: PatternNode) throws(PatternError) {
    switch node {
    case .empty: break
    case .set(let set):
      // Finding a set in the index hashes all of its ranges.
      try spend(2 + set.ranges.count)
      try emit(.set(index(of: set)))
    case .assertion(let assertion): try emit(.assertion(assertion))
    case .concatenation(let nodes): for node in nodes { try append(node) }
    case .alternation(let nodes): try appendAlternation(nodes)
    case .group(let node, let number):
      groupCount = max(groupCount, number)
      try emit(.save(Int32(2 * number)))
      try append(node)
      try emit(.save(Int32(2 * number + 1)))
    case .repetition(let node, let minimum, let maximum, let isGreedy):
      try appendRepetition(node, minimum, maximum, isGreedy)
    }
  }

  private mutating func index(of set: UnitSet) -> Int32 {
    if let index = setIndices[set] { return index }
    let index = Int32(sets.count)
    sets.append(set)
    setIndices[set] = index
    return index
  }

  private mutating func appendAlternation(_ nodes: [PatternNode]) throws(PatternError) {
    var ends: [Int] = []
    for (index, node) in nodes.enumerated() {
      guard index < nodes.count - 1 else {
        try append(node)
        break
      }
      let split = instructions.count
      try emit(.split(0, 0))
      try append(node)
      ends.append(instructions.count)
      try emit(.jump(0))
      instructions[split] = .split(Int32(split + 1), position)
    }
    for end in ends { instructions[end] = .jump(position) }
  }

  private mutating func appendRepetition(
    _ node: PatternNode, _ minimum: Int, _ maximum: Int?, _ isGreedy: Bool
  ) throws(PatternError) {
    guard let maximum else {
      guard minimum > 0 else { return try appendLoop(node, isGreedy) }
      guard try appendCopies(of: node, minimum - 1) else { return }
      let body = position
      try append(node)
      try appendSplit(body: body, isGreedy)
      return
    }
    guard try appendCopies(of: node, minimum), maximum > minimum else { return }
    var splits: [Int] = []
    for _ in minimum..<maximum {
      splits.append(instructions.count)
      try emit(.split(0, 0))
      guard try appendCopies(of: node, 1) else { break }
    }
    for split in splits { setSplit(split, body: Int32(split + 1), end: position, isGreedy) }
  }

  /// Appends copies of a node. Returns false if the node has no instructions: it matches the empty text only, and more
  /// copies add nothing.
  private mutating func appendCopies(of node: PatternNode, _ count: Int) throws(PatternError) -> Bool {
    for _ in 0..<count {
      let before = instructions.count
      try append(node)
      if instructions.count == before { return false }
    }
    return true
  }

  /// Appends `node*`. A node that can match the empty text is translated as `(node+)?`: the matcher visits each
  /// instruction once per offset, and only this form then prefers the same match as a backtracking matcher.
  private mutating func appendLoop(_ node: PatternNode, _ isGreedy: Bool) throws(PatternError) {
    let split = instructions.count
    try emit(.split(0, 0))
    let body = position
    try append(node)
    // The check whether the node can match the empty text visits as many nodes as the node has instructions.
    try spend(2 * (instructions.count - Int(body)))
    if node.matchesEmpty { try appendSplit(body: body, isGreedy) } else { try emit(.jump(Int32(split))) }
    setSplit(split, body: body, end: position, isGreedy)
  }

  private mutating func appendSplit(body: Int32, _ isGreedy: Bool) throws(PatternError) {
    let split = instructions.count
    try emit(.split(0, 0))
    setSplit(split, body: body, end: position, isGreedy)
  }

  private mutating func setSplit(_ index: Int, body: Int32, end: Int32, _ isGreedy: Bool) {
    instructions[index] = isGreedy ? .split(body, end) : .split(end, body)
  }
}

extension PatternNode {
  /// Whether the node may match the empty text.
  var matchesEmpty: Bool {
    switch self {
    case .empty, .assertion: true
    case .set: false
    case .concatenation(let nodes): nodes.allSatisfy(\.matchesEmpty)
    case .alternation(let nodes): nodes.contains(where: \.matchesEmpty)
    case .repetition(let node, let minimum, _, _): minimum == 0 || node.matchesEmpty
    case .group(let node, _): node.matchesEmpty
    }
  }
}
