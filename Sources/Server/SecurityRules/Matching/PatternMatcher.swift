// Matches a pattern in one pass over the text, by Pike's simulation of the automaton. A unit of text is a UTF-16 code
// unit or a Unicode code point, depending on the rule language.
//
// The matcher follows all ways to match the text at the same time. A thread is one of these ways: the instruction that
// it has reached, and with capturing groups the offsets of its groups. Each unit of the text advances all threads. The
// threads at an offset are in order of preference. Time is therefore linear in the text for every pattern: nested
// repetitions such as (a*)*b cost no more than others.
//
// Invariant: at each offset, an instruction has at most one thread. So a unit costs at most one step for each
// instruction of the pattern, and one for each thread.

/// One search of a pattern in a text.
struct PatternMatcher {
  private let pattern: Pattern
  private var current: ThreadList
  private var next: ThreadList
  private var scratch: Scratch

  /// The steps that one thread costs at each offset, because the offsets of its groups are copied.
  private let stepsPerThread: Int

  /// Makes a matcher, which may search several times.
  ///
  /// - Parameter slotCount: the number of offsets to record: 0 if only the existence of a match matters; 2 for its
  ///   range; two more for each group.
  init(
    _ pattern: Pattern, slotCount: Int, budget: inout PatternBudget
  ) throws(PatternBudget.Exhausted) {
    try budget.spend(pattern.instructions.count * (1 + slotCount))
    self.pattern = pattern
    stepsPerThread = 1 + slotCount / 4
    current = ThreadList(pattern.instructions.count, slotCount)
    next = current
    scratch = Scratch(slots: Array(repeating: -1, count: slotCount))
  }

  /// Searches a text. Returns the recorded offsets of the preferred match; nil if there is none.
  ///
  /// - Parameters:
  ///   - text: the units from the offset at which the search starts.
  ///   - before: the unit before the first one; nil at the start of the text.
  mutating func search(
    _ text: some Sequence<UInt32>, after before: UInt32?, budget: inout PatternBudget
  ) throws(PatternBudget.Exhausted) -> [Int]? {
    current.removeAll()
    next.removeAll()
    scratch.visits.removeAll(keepingCapacity: true)
    var units = text.makeIterator()
    var position = TextPosition(offset: 0, previous: before, next: units.next())
    var match: [Int]?
    while true {
      // An earlier start is preferred. Therefore the thread that starts here is the last one, and none starts
      // after a match was found.
      if match == nil, position.offset == 0 || !pattern.isAnchoredAtStart {
        scratch.start(at: position.offset)
        try current.add(0, at: position, of: pattern, &scratch, &budget)
      }
      if current.threads.isEmpty, match != nil || pattern.isAnchoredAtStart { return match }
      try budget.spend(1 + current.threads.count * stepsPerThread)
      let following = TextPosition(
        offset: position.offset + 1, previous: position.next, next: position.next == nil ? nil : units.next())
      threads: for thread in current.threads {
        switch pattern.instructions[Int(thread)] {
        case .set(let set):
          guard let unit = position.next, pattern.sets[Int(set)].contains(unit) else { continue }
          current.load(thread, into: &scratch)
          try next.add(thread + 1, at: following, of: pattern, &scratch, &budget)
        case .match:
          guard !scratch.slots.isEmpty else { return [] }
          current.load(thread, into: &scratch)
          scratch.slots[1] = position.offset
          match = scratch.slots
          // The threads after this one are less preferred, so they end.
          break threads
        case .split, .jump, .assertion, .save: break
        }
      }
      swap(&current, &next)
      next.removeAll()
      if position.next == nil { return match }
      position = following
    }
  }
}

/// A position between two units; nil stands for an end of the text.
private struct TextPosition {
  let offset: Int
  let previous: UInt32?
  let next: UInt32?
}

/// Temporary state of the addition of one thread.
private struct Scratch {
  /// An instruction to visit, or an offset to restore after the instructions above it on the stack were visited.
  enum Visit {
    case instruction(Int32)
    case restore(slot: Int, offset: Int)
  }

  var visits: [Visit] = []
  /// The offsets that the thread has recorded.
  var slots: [Int]

  init(slots: [Int]) { self.slots = slots }

  mutating func start(at offset: Int) {
    guard !slots.isEmpty else { return }
    for slot in slots.indices { slots[slot] = -1 }
    slots[0] = offset
  }
}

/// The threads at one offset.
private struct ThreadList {
  /// The instruction of each thread, the most preferred first.
  private(set) var threads: [Int32] = []
  /// The index of each instruction in `threads`; valid only if `threads` has this instruction at that index.
  private var indices: [Int32]
  /// The recorded offsets of each instruction's thread, `slotCount` for each; -1 for none.
  private var slots: [Int]
  private let slotCount: Int

  init(_ instructionCount: Int, _ slotCount: Int) {
    indices = Array(repeating: 0, count: instructionCount)
    slots = Array(repeating: -1, count: instructionCount * slotCount)
    self.slotCount = slotCount
  }

  mutating func removeAll() { threads.removeAll(keepingCapacity: true) }

  /// Copies the offsets that a thread has recorded.
  func load(_ thread: Int32, into scratch: inout Scratch) {
    for slot in 0..<slotCount { scratch.slots[slot] = slots[Int(thread) * slotCount + slot] }
  }

  /// Adds the threads that an instruction reaches without consuming a unit.
  mutating func add(
    _ instruction: Int32, at position: TextPosition, of pattern: Pattern, _ scratch: inout Scratch,
    _ budget: inout PatternBudget
  ) throws(PatternBudget.Exhausted) {
    scratch.visits.append(.instruction(instruction))
    while let visit = scratch.visits.popLast() {
      switch visit {
      case .restore(let slot, let offset): scratch.slots[slot] = offset
      case .instruction(let index):
        guard insert(index) else { continue }
        try budget.spend()
        switch pattern.instructions[Int(index)] {
        case .split(let preferred, let other):
          scratch.visits.append(.instruction(other))
          scratch.visits.append(.instruction(preferred))
        case .jump(let target): scratch.visits.append(.instruction(target))
        case .assertion(let assertion):
          if assertion.holds(between: position.previous, and: position.next) {
            scratch.visits.append(.instruction(index + 1))
          }
        case .save(let slot):
          if slot < slotCount {
            scratch.visits.append(.restore(slot: Int(slot), offset: scratch.slots[Int(slot)]))
            scratch.slots[Int(slot)] = position.offset
          }
          scratch.visits.append(.instruction(index + 1))
        case .set, .match:
          for slot in 0..<slotCount { slots[Int(index) * slotCount + slot] = scratch.slots[slot] }
        }
      }
    }
  }

  private mutating func insert(_ thread: Int32) -> Bool {
    let index = Int(indices[Int(thread)])
    if index < threads.count, threads[index] == thread { return false }
    precondition(threads.count < indices.count, "invariant: an instruction has at most one thread")
    indices[Int(thread)] = Int32(threads.count)
    threads.append(thread)
    return true
  }
}

extension Pattern {
  /// Whether the pattern matches anywhere in a text.
  ///
  /// - Throws: ``PatternBudget/Exhausted`` if the budget does not suffice.
  package func matches(
    in text: some Sequence<UInt32>, budget: inout PatternBudget
  ) throws(PatternBudget.Exhausted) -> Bool {
    var matcher = try PatternMatcher(self, slotCount: 0, budget: &budget)
    return try matcher.search(text, after: nil, budget: &budget) != nil
  }

  /// The first match in a text: its range and the ranges of the groups, in order; nil for a group that is not part of
  /// the match.
  ///
  /// Returns the same match as a backtracking matcher.
  ///
  /// - Parameters:
  ///   - text: the units from the offset at which the search starts. Ranges count from its first unit.
  ///   - before: the unit before the first one; nil at the start of the text.
  /// - Throws: ``PatternBudget/Exhausted`` if the budget does not suffice.
  package func firstMatch(
    in text: some Sequence<UInt32>, after before: UInt32? = nil, budget: inout PatternBudget
  ) throws(PatternBudget.Exhausted) -> [Range<Int>?]? {
    var matcher = try PatternMatcher(self, slotCount: slotCount, budget: &budget)
    guard let slots = try matcher.search(text, after: before, budget: &budget) else { return nil }
    return Self.ranges(of: slots)
  }

  /// The slots of a match with all groups.
  var slotCount: Int { 2 * (groupCount + 1) }

  /// The ranges that slots record; nil for a group that is not part of the match.
  static func ranges(of slots: [Int]) -> [Range<Int>?] {
    stride(from: 0, to: slots.count, by: 2).map { slot in
      let (start, end) = (slots[slot], slots[slot + 1])
      return start >= 0 && end >= start ? start..<end : nil
    }
  }
}
