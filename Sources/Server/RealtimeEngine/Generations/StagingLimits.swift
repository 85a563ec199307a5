// Defines the limits of one commit for operations that read, replace or write large subtrees. Each limit bounds how
// long other operations wait. A large value is staged: small commits store its rows invisibly as a generation (rows
// under a separate prefix), and one commit installs it.

/// The sizes of the steps in which large subtrees are read, written and removed.
struct StagingLimits: Sendable {
  /// Maximum number of rows of a value that an operation reads on the executor, and of their bytes. Larger
  /// values are read in the background.
  var readRows = 1_024
  var readBytes = 256 << 10
  /// Maximum number of rows that one step of a background read reads, and of their bytes.
  var chunkRows = 2_048
  var chunkBytes = 256 << 10
  /// Maximum time that one batch spends on reads and index builds. Further operations of this kind wait for the next
  /// batch, except for the operation that has been skipped most often.
  var batchQuantum = Duration.milliseconds(8)
  /// Maximum number of children of a window (a query's result) that is read from rows on a large location, and of
  /// their bytes of JSON. They apply at the start of a listen, when the executor reads all these children.
  var maximumWindowChildren = 1_024
  var maximumWindowBytes = 1 << 20
  /// The largest value, in bytes of JSON, that an operation hashes or sorts on the executor.
  var preparedBytes = 256 << 10
  /// Maximum number of rows that the commit that replaces a location clears itself, and of the bytes of their
  /// keys. More rows are cleared in the background.
  var clearedRows = 1_024
  var clearedBytes = 256 << 10
  /// Minimum number of changes of an update for which gaps between rows are tracked (see `RowGap`). For fewer changes
  /// the tracking costs more than it saves, because finding a gap may scan over many cleared rows.
  var minimumGapChanges = 32
  /// Maximum number of generation numbers that one commit assigns. The format allows 4,095.
  var maximumNumbersPerCommit: UInt64 = 4_095
  /// Maximum evaluation steps of the access policy for the writes of one batch: about 10 ms. Writes that need more are
  /// decided in the background.
  var decisionSteps = 1_000_000
  /// Minimum evaluation steps for each write, even after the batch has spent its maximum: about 20 µs.
  var minimumDecisionSteps = 2_000
  /// Maximum evaluation steps for a write that a batch decides because background jobs could not: about 20 ms. It also
  /// limits the check of a decision that was made in the background.
  var maximumDecisionSteps = 2_000_000
  /// Writes with more paths than this are decided in the background if they need a decision.
  var decidedPaths = 1_000
  /// The weight (upper bound of the written bytes) above which writes are staged.
  var minimumStagedBytes = 512 << 10
  /// The weight above which a single value of a staged write gets a generation.
  var minimumGenerationBytes = 64 << 10
  /// Maximum number of rows that one staging commit writes or removes, and of their bytes.
  var stepRows = 512
  var stepBytes = 128 << 10
  /// Maximum staging commits in flight at once. They share their syncs.
  var maximumCommitsInFlight = 4
  /// Maximum number of rows that one commit clears in the background, and of the bytes of their keys.
  var cleanedRows = 256
  var cleanedBytes = 64 << 10
  /// Maximum rows that one commit clears while clients use the database.
  var cleanedRowsWhenBusy = 32

  /// The default limits. With them a step takes a few milliseconds.
  static let standard = StagingLimits()
}
