// The budget of the decisions about one operation of the Realtime Database. Rules are evaluated while other operations
// wait, so that their work must be bounded whatever rules, data and caller contain.

/// The costs of an evaluation, in steps. A step takes about as long as one operator.
enum RealtimeBudget {
  /// The steps of every operation.
  static let stepsPerOperation = 2_000_000
  /// Further steps for each written location that has rules: a large write may cost more than a small one.
  static let stepsPerValidatedNode = 500
  /// The cost of reading one location from the tree.
  static let stepsPerRead = 20
  /// The bytes of text that cost one step.
  static let bytesPerStep = 8
  /// The largest text that an expression may compute, in bytes of UTF-8.
  static let maximumTextBytes = 10 << 20
}
