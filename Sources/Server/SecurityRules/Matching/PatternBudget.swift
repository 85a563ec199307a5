/// A budget of work, shared by all patterns and matches of one evaluation.
///
/// A step is one instruction at one offset of the text, or other work of about the same time. Compiling a pattern whose
/// text comes from a request and allocating the memory of a matcher also cost steps. A match takes at most the number
/// of instructions times the length of the text. So the budget bounds time, not only the size of the pattern or the
/// text.
package struct PatternBudget: Sendable {
  /// The budget does not suffice.
  package struct Exhausted: Error, Sendable, Hashable {
    package init() {}
  }

  /// The steps that remain.
  package private(set) var steps: Int

  /// A budget of `steps` steps.
  package init(steps: Int) { self.steps = steps }

  /// A budget that always suffices, for patterns of a trusted author.
  package static let unlimited = PatternBudget(steps: .max)

  /// Adds `count` steps.
  package mutating func add(_ count: Int) { steps += count }

  /// Spends `count` steps.
  package mutating func spend(_ count: Int = 1) throws(Exhausted) {
    guard steps >= count else {
      steps = 0
      throw Exhausted()
    }
    steps -= count
  }
}
