// Every limit of the engine in one place: those that the product publishes, and some others, which a server may raise,
// and what the engine allows itself. Those of names are `FirestoreModel.Limits`.

public import FirestoreModel
import OrderedStore

/// The limits that a server may raise: those that the product publishes, whose defaults are its own, and two of Hearth's.
public struct EngineLimits: Sendable, Hashable {
  /// The limits of documents and queries.
  public var data = FirestoreLimits.standard
  /// Bytes of one request, or of one message of a stream; the endpoints keep it.
  public var requestBytes = 10 << 20
  /// Index entries of one document, as the product counts them.
  public var indexEntries = 40_000
  /// Bytes of one index entry, by the published formula: the document's name and its parent's, the field's name, the
  /// value as far as it is indexed, and 32.
  public var indexEntryBytes = 7_680
  /// Bytes of all index entries of one document.
  public var indexEntriesBytes = 8 << 20
  /// Composite indexes of one database, those that take the place of exemptions in collection groups included.
  public var compositeIndexes = 1_000
  /// Fields of one database whose automatic indexes are chosen.
  public var fieldOverrides = 200
  /// How far back reads reach, in seconds: one hour.
  public var historySeconds = 3_600
  /// How old a resume token may be, in seconds: half an hour. At most `historySeconds`.
  public var resumeSeconds = 1_800
  /// A transaction ends so many seconds after its last request.
  public var transactionIdleSeconds = 60
  /// A transaction ends so many seconds after its beginning. At most `historySeconds`.
  public var transactionSeconds = 270
  /// Transactions of one database that may be open at once; Hearth's own limit.
  public var openTransactions = 10_000
  /// Active targets of one Listen stream; Hearth's own limit.
  public var streamTargets = 1_000

  /// The product's own limits.
  public init() {}

  /// The product's own limits.
  public static let standard = EngineLimits()

  /// `transactionIdleSeconds` in microseconds.
  var transactionIdle: UInt64 { UInt64(clamping: transactionIdleSeconds) * 1_000_000 }
  /// `transactionSeconds` in microseconds.
  var transactionTotal: UInt64 { UInt64(clamping: transactionSeconds) * 1_000_000 }
  /// `resumeSeconds` in microseconds.
  var resumeWindow: UInt64 { UInt64(clamping: resumeSeconds) * 1_000_000 }

  /// The longest history that a server may be told to keep, in seconds: a week. Whoever only looks at a store asks for
  /// as much, so that nothing is forgotten because of it.
  public static let longestHistorySeconds = 7 * 24 * 3_600
}

/// What the engine allows itself and one peer. Times are microseconds.
extension EngineLimits {
  /// Bytes of the values in one entry of a composite index. What an index holds may not depend on a setting.
  public static let compositeEntryBytes = 7_680
  /// Fields of one composite index.
  public static let compositeFields = 100
  /// Documents that one step of building indexes goes over.
  public static let indexingStep = 128
  /// Bytes of these documents, after which the step ends.
  public static let indexingStepBytes = 1 << 20
  /// Bytes of the entries that the step adds or removes, after which it ends, be it in the middle of a document.
  public static let indexingStepEntryBytes = 8 << 20
  /// Bytes of one document's entries in the composite indexes that are being built; one with more cannot be built. A commit,
  /// of at most 64 MiB, must be able to replace them all.
  public static let builtDocumentBytes = 32 << 20
  /// Ended transactions whose tokens are remembered, so that late calls get the right error.
  public static let endedTransactions = 20_000
  /// Documents and ranges that one transaction may read.
  public static let transactionReads = 250_000
  /// Bytes of the keys of what one transaction reads.
  public static let transactionReadBytes = 64 << 20
  /// Bytes of the keys of what all open transactions of one database have read.
  public static let openTransactionsReadBytes = 256 << 20
  /// Writes of one BatchWrite that are under way at once.
  public static let batchWritesAtOnce = 64
  /// Bytes of stored documents that one commit goes over, with 16 for every field and element that a write goes over
  /// again: the database's other writes wait meanwhile.
  public static let commitWork = 512 << 20
  /// Documents that one commit of `clear` deletes.
  public static let clearedDocuments = 20_000
  /// Bytes of these documents, after which no more are added.
  public static let clearedBytes = 64 << 20
  /// Bytes of the keys that the commit removes, and of its log record: what a commit may have.
  public static let clearedKeyBytes = StoreLimits.maximumCommitBytes - 1
  /// How long a transaction's read waits for locks behind transactions that are at work; for one whose client is silent
  /// it gives up once that has lasted as long as a write waits.
  public static let readLockWait: UInt64 = 30_000_000
  /// How long a read waits, in all, for a version of about the time that it begins at.
  public static let readPatience: UInt64 = 25_000
  /// Bytes of documents that one query may hold to sort them.
  public static let sortBytes = 64 << 20
  /// Documents in one delivered page of a query or batch.
  public static let pageDocuments = 256
  /// Bytes of documents in one delivered page, after which no more are added.
  public static let pageBytes = 1 << 20
  /// Documents or ids on one page of a listing, unless fewer are asked for.
  public static let listPage = 300
  /// The longest listing page, whatever is asked for.
  public static let listPageMaximum = 10_000
  /// Bytes of documents or ids on a listing page, after which no more are added: the page's token leads on.
  public static let listPageBytes = 4 << 20
  /// Rows and index entries that a query goes over in one read; then others have their turn, and it goes on.
  public static let scanRows = 4_096
  /// Bytes of documents that it goes over in one read.
  public static let scanBytes = 8 << 20
  /// Names in one BatchGetDocuments, each counted once.
  public static let batchGetNames = 100_000
  /// Distinct queries of one collection, or of one collection group, that have nothing by which their matches can be found,
  /// so that every write there is compared with each.
  public static let unplacedQueries = 100_000
  /// Commands of one Listen stream that wait to be carried out.
  public static let streamCommands = 4_000
  /// Bytes of these commands' requests.
  public static let streamCommandBytes = 32 << 20
  /// Bytes of the requests that a stream's active targets were asked for with.
  public static let streamTargetBytes = 16 << 20
  /// Document changes that wait for one slow Listen stream in full; beyond that, only their names do.
  public static let streamChanges = 1_024
  /// Bytes of the documents in these changes; beyond that, too, only their names wait.
  public static let streamChangeBytes = 4 << 20
  /// Names that wait for one slow Listen stream; beyond that, its targets are reset.
  public static let streamDirtyDocuments = 16_384
  /// Bytes of these names.
  public static let streamDirtyBytes = 4 << 20
  /// Changes that one cut may mean to a stream's limited targets; if there are more, all targets are reset.
  public static let streamWindowMoves = 65_536
  /// Commits that a resumed target reads from the log; if there are more, it is reset.
  public static let resumeRecords = 10_000
  /// Documents of a resumed target that are counted, to tell a client that had another number of them. Of a target that
  /// is said to have had more, only what has changed is looked at. Counting reads them.
  public static let resumeCountDocuments = 1_000
  /// Names in an existence filter, by their bytes; beyond that it holds the count alone.
  public static let filterNameBytes = 8 << 20
  /// Answers handed to a Listen stream's output at once.
  public static let watchBatch = 256
  /// Bytes of documents in these answers, after which no more are added.
  public static let watchBatchBytes = 256 << 10
  /// Documents between two points of a PartitionQuery, about: fewer are not worth a query of their own.
  public static let partitionDocuments = 64
  /// Points of one PartitionQuery, however many are asked for.
  public static let partitionPoints = 1_024
  /// Names that a PartitionQuery holds to choose its points from.
  public static let partitionSamples = 16_384
  /// Bytes of these names.
  public static let partitionSampleBytes = 8 << 20
  /// Names that a PartitionQuery goes over in one read.
  public static let partitionScan = 16_384
}
