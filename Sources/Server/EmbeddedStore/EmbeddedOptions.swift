// The options with which an embedded store is opened.

public import OrderedStore

/// The options of an embedded store.
public struct EmbeddedOptions: Sendable {
  /// The options of every store: clock, trimming, reports.
  public var store: StoreOptions
  /// The size of the cache of stored blocks, in bytes; nil for a quarter of the memory that the process may use.
  public var blockCacheBytes: Int?
  /// The size of a memtable, in bytes. Memtables hold new rows in memory until two of them are written to a sorted
  /// table on disk. A start replays the logs of at most five of them.
  public var memtableBytes: Int
  /// The number of threads for reads that need the disk.
  public var readerThreads: Int
  /// Whether commits are synced. The durability tests disable syncs to prove that they detect the resulting
  /// losses.
  package var syncsCommits = true
  /// The maximum number of open tables; nil for ``OpenFileBudget/tables``. Only tests set it.
  package var maximumOpenTables: Int?

  /// Makes options.
  public init(
    store: StoreOptions = StoreOptions(), blockCacheBytes: Int? = nil, memtableBytes: Int = 16 << 20,
    readerThreads: Int = 4
  ) {
    self.store = store
    self.blockCacheBytes = blockCacheBytes
    self.memtableBytes = memtableBytes
    self.readerThreads = readerThreads
  }
}
