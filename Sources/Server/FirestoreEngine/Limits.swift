// Limits of the engine. `EngineLimits` has the limits that Firebase publishes, which a server may raise, and
// constant limits of this engine. Limits of names are in `FirestoreModel.Limits`.
//
// The names in a server's configuration omit `maximum`; see docs/limits.md.

public import FirestoreModel
import OrderedStore

/// Limits that a server may raise. The defaults are Firebase's published limits, except for two limits that
/// only Hearth has.
public struct EngineLimits: Sendable, Hashable {
  /// Limits of documents and queries.
  public var data = FirestoreLimits.standard
  /// Maximum bytes of one request, or of one message of a stream. The endpoints enforce it.
  public var maximumRequestBytes = 10 << 20
  /// Maximum index entries of one document, as Firebase counts them.
  public var maximumIndexEntries = 40_000
  /// Maximum bytes of one index entry, by the published formula: the name of the document and of its parent,
  /// the field's name, the indexed part of the value, and 32 bytes.
  public var maximumIndexEntryBytes = 7_680
  /// Maximum bytes of all index entries of one document.
  public var maximumIndexEntriesBytes = 8 << 20
  /// Maximum composite indexes of one database, including single-field indexes of collection groups.
  public var maximumCompositeIndexes = 1_000
  /// Maximum single-field overrides of one database.
  public var maximumFieldOverrides = 200
  /// How long history stays readable, in seconds: one hour.
  public var historySeconds = 3_600
  /// Maximum age of a resume token, in seconds: half an hour. Must not exceed `historySeconds`.
  public var maximumResumeTokenAgeSeconds = 1_800
  /// Idle timeout of a transaction, in seconds after its last request.
  public var transactionIdleTimeoutSeconds = 60
  /// Total timeout of a transaction, in seconds after its beginning. Must not exceed `historySeconds`.
  public var transactionTimeoutSeconds = 270
  /// Maximum open transactions of one database; Hearth's own limit. Callers other than service accounts may use half of
  /// them.
  public var maximumOpenTransactions = 10_000
  /// Maximum active targets of one Listen stream; Hearth's own limit.
  public var maximumStreamTargets = 1_000

  /// Makes Firebase's limits.
  public init() {}

  /// Firebase's limits.
  public static let standard = EngineLimits()

  /// `transactionIdleTimeoutSeconds` in microseconds.
  var transactionIdleTimeout: UInt64 { UInt64(clamping: transactionIdleTimeoutSeconds) * 1_000_000 }
  /// `transactionTimeoutSeconds` in microseconds.
  var transactionTimeout: UInt64 { UInt64(clamping: transactionTimeoutSeconds) * 1_000_000 }
  /// `maximumResumeTokenAgeSeconds` in microseconds.
  var maximumResumeTokenAge: UInt64 { UInt64(clamping: maximumResumeTokenAgeSeconds) * 1_000_000 }

  /// Maximum history that a server may be configured to keep, in seconds: a week. A tool that only reads a
  /// store opens it with this value, so that opening it discards nothing.
  public static let maximumHistorySeconds = 7 * 24 * 3_600
}

/// Limits that only this engine has, as constants. Times are in microseconds.
extension EngineLimits {
  /// Maximum bytes of the values in one entry of a composite index. It is a constant, since the stored
  /// entries must not depend on a setting.
  public static let maximumCompositeEntryBytes = 7_680
  /// Maximum fields of one composite index.
  public static let maximumCompositeFields = 100
  /// Maximum documents that one index-building step scans.
  public static let indexingStepDocuments = 128
  /// Bytes of these documents after which the step ends.
  public static let indexingStepBytes = 1 << 20
  /// Bytes of added or removed entries after which the step ends, even within a document.
  public static let indexingStepEntryBytes = 8 << 20
  /// Maximum bytes of one document's entries in the composite indexes being built; a larger document fails
  /// the build. A later commit must be able to remove all of them and write new ones, within the store's
  /// limit of 64 MiB per commit.
  public static let maximumBuiltDocumentBytes = 32 << 20
  /// Maximum ended transactions whose outcome is remembered, so that a later call with the token gets the
  /// right error.
  public static let maximumEndedTransactions = 20_000
  /// Maximum documents and ranges that one transaction may read.
  public static let maximumTransactionReads = 250_000
  /// Maximum bytes of the keys that one transaction reads.
  public static let maximumTransactionReadBytes = 64 << 20
  /// Maximum bytes of the keys that all open transactions of one database have read.
  public static let maximumOpenTransactionsReadBytes = 256 << 20
  /// Maximum concurrent commits of one BatchWrite.
  public static let maximumConcurrentBatchWrites = 64
  /// Maximum cost of one commit: bytes of stored documents, plus 16 for each field and element that a write
  /// processes. The limit exists because the database's other writes wait while a commit runs.
  public static let maximumCommitCost = 512 << 20
  /// Maximum number of times that the access policy starts its decision about one large commit. The decision starts again
  /// when a document changes that the policy has read.
  static let maximumCommitDecisions = 10
  /// Maximum documents that one commit of `clear` deletes.
  public static let maximumClearedDocuments = 20_000
  /// Bytes of these documents after which no more are added.
  public static let maximumClearedBytes = 64 << 20
  /// Maximum bytes of removed keys and log record in one commit of `clear`: just below the store's commit
  /// limit.
  public static let maximumClearedKeyBytes = StoreLimits.maximumCommitBytes - 1
  /// How long a transactional read waits for locks of active transactions. It fails earlier once a holder has
  /// been idle for `lockWait`.
  public static let readLockTimeout: UInt64 = 30_000_000
  /// How long a read may wait for a version close to the current time.
  public static let readTimeout: UInt64 = 25_000
  /// Maximum bytes of documents that one query may hold for sorting.
  public static let maximumSortBytes = 64 << 20
  /// Maximum documents in one delivered page of a query or batch.
  public static let maximumPageDocuments = 256
  /// Bytes of documents in a remote client's first page after which no more documents are added. Each further page may be
  /// twice as large as the previous one, up to `maximumPageBytes`.
  public static let minimumPageBytes = 64 << 10
  /// Bytes of documents in one delivered page after which no more are added.
  public static let maximumPageBytes = 1 << 20
  /// Default number of documents or ids on one page of a listing.
  public static let defaultListPageSize = 300
  /// Maximum number of documents or ids on one page of a listing.
  public static let maximumListPageSize = 10_000
  /// Bytes of documents or ids on a listing page after which no more are added. The next page has the remaining ones.
  public static let maximumListPageBytes = 4 << 20
  /// Maximum rows and index entries that a query scans in one read. Then it yields and continues.
  public static let maximumScanRows = 4_096
  /// Maximum bytes of documents that a query reads in one read.
  public static let maximumScanBytes = 8 << 20
  /// Maximum distinct names in one BatchGetDocuments.
  public static let maximumBatchGetNames = 100_000
  /// Maximum distinct queries without a key in the target index (see `TargetIndexKey`), per collection or
  /// collection group. Every write to the collection is evaluated against each of them.
  public static let maximumUnindexedQueries = 100_000
  /// Maximum queued commands of one Listen stream.
  public static let maximumStreamCommands = 4_000
  /// Maximum bytes of these commands' requests.
  public static let maximumStreamCommandBytes = 32 << 20
  /// Maximum bytes of the requests that added a stream's active targets.
  public static let maximumStreamTargetBytes = 16 << 20
  /// Maximum document changes buffered with their documents for one slow Listen stream. Beyond it the stream buffers
  /// only the documents' names.
  public static let maximumStreamChanges = 1_024
  /// Maximum bytes of the documents in these changes. Beyond it the stream buffers only the documents' names.
  public static let maximumStreamChangeBytes = 4 << 20
  /// Maximum buffered names for one slow Listen stream. Beyond it the stream's targets are reset.
  public static let maximumStreamChangedNames = 16_384
  /// Maximum bytes of these names.
  public static let maximumStreamChangedNameBytes = 4 << 20
  /// Maximum changes in one snapshot to a stream's targets with limit or offset. Beyond it all targets of the
  /// stream are reset.
  public static let maximumWindowChanges = 65_536
  /// Maximum commits that the server reads from the log for a target that a client resumes by a token. Beyond it the server
  /// resets the target.
  public static let maximumResumeRecords = 10_000
  /// Maximum `expectedCount` (the number of documents that the client reports) for which the server counts a resumed
  /// target's documents. Counting has to read them. If `expectedCount` is larger, the server sends only the changes.
  public static let maximumResumeCountDocuments = 1_000
  /// Maximum bytes of the names in an existence filter. Beyond it the filter holds the count alone.
  public static let maximumFilterNameBytes = 8 << 20
  /// Maximum responses handed to a Listen stream's output in one call.
  public static let maximumWatchBatchResponses = 256
  /// Bytes of documents in these responses after which no more are added.
  public static let maximumWatchBatchBytes = 256 << 10
  /// Maximum bytes of responses that a Listen stream keeps for its next batch after it has processed a page of documents. It
  /// sends more bytes immediately, because it then releases the memory that it reserved for the page.
  public static let maximumWatchRemainderBytes = 8 << 10
  /// Bytes of changes that a stream buffers without reserving memory for them.
  public static let watchBufferAllowance = 64 << 10
  /// Approximate minimum of documents between two points of a PartitionQuery.
  public static let minimumPartitionDocuments = 64
  /// Maximum points of one PartitionQuery.
  public static let maximumPartitionPoints = 1_024
  /// Maximum names that a PartitionQuery holds to choose its points from.
  public static let maximumPartitionSamples = 16_384
  /// Maximum bytes of these names.
  public static let maximumPartitionSampleBytes = 8 << 20
  /// Maximum names that a PartitionQuery scans in one read.
  public static let maximumPartitionScan = 16_384
}
