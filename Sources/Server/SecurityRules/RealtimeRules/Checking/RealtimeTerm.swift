// A rule expression of the Realtime Database after its names and types were checked, ready to evaluate.

/// A checked expression.
indirect enum RealtimeTerm: Sendable {
  /// A value that the expression contains.
  case constant(RealtimeValue)
  case auth
  case now
  /// `root`, `data` or `newData`.
  case snapshot(RealtimeSnapshotName)
  /// `root.child('…')`, or a chain of such calls. The snapshot is known before the evaluation.
  /// - Parameters:
  ///   - steps: the cost of the calls that it replaces.
  ///   - recorded: the values of the marked expressions inside.
  case knownSnapshot(RealtimeSnapshot, steps: Int, recorded: [(mark: Int32, value: RealtimeSnapshot)] = [])
  /// The key that a wildcard matched: its index among the wildcards from the root down.
  case capture(Int)
  case query(RealtimeQueryField)
  /// A member of a claim, or the length of a string.
  case property(RealtimeTerm, String)
  /// A member whose name is computed.
  case element(RealtimeTerm, RealtimeTerm)
  case not(RealtimeTerm)
  case negative(RealtimeTerm)
  case all([RealtimeTerm])
  case any([RealtimeTerm])
  case conditional(RealtimeTerm, RealtimeTerm, RealtimeTerm)
  case chain(RealtimeTerm, [Step])
  case snapshotCall(RealtimeSnapshotMethod, RealtimeTerm, [RealtimeTerm])
  case textCall(RealtimeTextMethod, RealtimeTerm, [RealtimeTerm])
  case matches(RealtimeTerm, Pattern)
  /// An expression whose values are recorded, by its index among the marks of the ruleset. Only rulesets that explain
  /// denials or record coverage have marks.
  case marked(Int32, RealtimeTerm)

  /// An operator and its right operand.
  struct Step: Sendable {
    let operation: RealtimeOperator
    let operand: RealtimeTerm
  }
}

/// A snapshot that has a name in rules.
enum RealtimeSnapshotName: String, Hashable, Sendable {
  /// The root before the operation.
  case root
  /// The rule's location before the operation.
  case data
  /// The rule's location after the write.
  case newData
}
