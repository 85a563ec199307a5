// Defines the limits of one commit for operations that read, replace or write large subtrees. Each limit
// bounds how long other operations wait.

/// The sizes of the steps in which large subtrees are read, written and removed.
struct StagingLimits: Sendable {
  /// Maximum rows of a value, and their bytes, that an operation reads on the executor. Larger values are
  /// read in the background.
  var readRows = 1_024
  var readBytes = 256 << 10
  /// Maximum rows, and their bytes, of one step of a background read.
  var chunkRows = 2_048
  var chunkBytes = 256 << 10
  /// How long the operations of one batch may read or build indexes. The others of this kind wait for the
  /// next batch, except for the one that has waited longest.
  var batchQuantum = Duration.milliseconds(8)
  /// Maximum children of a window on a large location, and their bytes of JSON, that an operation reads on
  /// the executor to follow the window by rows.
  var maximumWindowChildren = 1_024
  var maximumWindowBytes = 1 << 20
  /// The largest value, in bytes of JSON, that an operation hashes or sorts on the executor.
  var preparedBytes = 256 << 10
  /// Maximum rows of a location, and bytes of their keys, that are cleared by the commit that replaces it.
  /// More rows are cleared in the background.
  var clearedRows = 1_024
  var clearedBytes = 256 << 10
  /// Minimum changes of an update for which gaps between rows are tracked. Finding a gap may scan over many
  /// cleared rows.
  var minimumGapChanges = 32
  /// Maximum generation numbers that one commit assigns; at most 4,095.
  var maximumNumbersPerCommit: UInt64 = 4_095
  /// The weight in bytes above which writes are staged.
  var minimumStagedBytes = 512 << 10
  /// The weight in bytes above which a single value gets a generation.
  var minimumGenerationBytes = 64 << 10
  /// Maximum rows, and their bytes, of one staging commit.
  var stepRows = 512
  var stepBytes = 128 << 10
  /// Maximum staging commits in flight at once. They share their syncs.
  var maximumCommitsInFlight = 4
  /// Maximum rows, and bytes of their keys, that one commit clears in the background.
  var cleanedRows = 256
  var cleanedBytes = 64 << 10
  /// Maximum rows that one commit clears while clients use the database.
  var cleanedRowsWhenBusy = 32

  /// Limits at which a step takes a few milliseconds.
  static let standard = StagingLimits()
}
