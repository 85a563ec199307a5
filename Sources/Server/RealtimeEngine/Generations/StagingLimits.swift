// How much one commit does at most for an operation that reads, replaces or brings much. Every number is a time that others wait.

/// The steps in which large subtrees are read, written and removed.
struct StagingLimits: Sendable {
  /// The most rows of a value, and bytes of them, that an operation reads in the sequencer. What has more is read aside.
  var readRows = 1_024
  var readBytes = 256 << 10
  /// The most rows, and bytes of them, that one step aside reads.
  var pieceRows = 2_048
  var pieceBytes = 256 << 10
  /// How long the operations of one batch read, or build indexes, before the others of this kind wait for the next. One
  /// goes in any case: the one that has waited longest.
  var turnTime = Duration.milliseconds(8)
  /// The most children of a window on a large location, and bytes of JSON in them, that an operation reads in the
  /// sequencer to follow it by rows.
  var windowChildren = 1_024
  var windowBytes = 1 << 20
  /// The largest value, in bytes of JSON, that an operation hashes or puts into an order in the sequencer.
  var preparedBytes = 256 << 10
  /// The most rows of one location, and bytes of their keys, that are cleared by the commit that replaces it. What has
  /// more is left behind and cleared in the background.
  var clearedRows = 1_024
  var clearedBytes = 256 << 10
  /// The fewest changes of one update for which it is worth to look beyond the rows of each: a look may go over many that
  /// were cleared.
  var stretchedChanges = 32
  /// The most numbers of generations and of what they leave behind that one commit gives out; at most 4,095.
  var commitNumbers: UInt64 = 4_095
  /// Writes that weigh more are filled in beforehand.
  var heavyBytes = 512 << 10
  /// A single value that weighs less is not worth a generation.
  var generationBytes = 64 << 10
  /// The most rows, and bytes of them, that one commit brings beforehand.
  var stepRows = 512
  var stepBytes = 128 << 10
  /// How many such commits are under way at once. Each waits for a sync, which they share.
  var commitsInFlight = 4
  /// The most rows that one commit clears in the background, and bytes of their keys.
  var cleanedRows = 256
  var cleanedBytes = 64 << 10
  /// The most rows that one commit clears while others use the database.
  var cleanedRowsWhenBusy = 32

  /// Some milliseconds a step.
  static let standard = StagingLimits()
}
