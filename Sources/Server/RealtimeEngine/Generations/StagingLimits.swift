// How much one commit does at most for a write that replaces much or brings much. Every number is a time that others wait.

/// The steps in which large subtrees are written and removed.
struct StagingLimits: Sendable {
  /// The most rows of one location, and bytes of their keys, that are cleared by the commit that replaces it. What has
  /// more is left behind and cleared in the background.
  var clearedRows = 1_024
  var clearedBytes = 256 << 10
  /// Writes that weigh more are filled in beforehand.
  var heavyBytes = 512 << 10
  /// A single value that weighs less is not worth a generation.
  var generationBytes = 64 << 10
  /// The most rows, and bytes of them, that one commit brings beforehand.
  var stepRows = 512
  var stepBytes = 128 << 10
  /// The most rows that one commit clears in the background, and bytes of their keys.
  var cleanedRows = 256
  var cleanedBytes = 64 << 10

  /// Some milliseconds a step.
  static let standard = StagingLimits()
}
