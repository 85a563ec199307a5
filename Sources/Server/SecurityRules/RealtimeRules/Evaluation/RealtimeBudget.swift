// The budget of the decisions about one operation of the Realtime Database. It bounds the work for all rules, data and
// callers.
//
// Other operations wait for decisions about reads, listens and onDisconnect writes, so these have a small budget. A
// write that takes longer is decided in the background (see `DecisionWork`), and has a large budget.

/// The costs of an evaluation, in steps. A step takes about as long as one operator.
enum RealtimeBudget {
  /// The steps of a read, a listen or an onDisconnect write: about 20 ms.
  static let stepsPerOperation = 2_000_000
  /// The steps of a write: about 10 s. A regular expression may take about 90 steps for each character of the largest text.
  static let stepsPerWrite = 1_000_000_000
  /// Further steps for each written location that has rules: a large write may cost more than a small one.
  static let stepsPerWrittenLocation = 500
  /// The cost of reading one location from the tree.
  static let stepsPerRead = 20
  /// The bytes of text that cost one step.
  static let bytesPerStep = 8
  /// The largest text that an expression may compute, in bytes of UTF-8.
  static let maximumTextBytes = 10 << 20
}
