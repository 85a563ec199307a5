public import OrderedStore

/// The options of an embedded store.
public struct EmbeddedOptions: Sendable {
  /// The options of every store: clock, trimming, reports.
  public var store: StoreOptions
  /// The size of the cache of stored blocks, in bytes; nil for a quarter of the memory that the process may use.
  public var blockCacheBytes: Int?
  /// The size of a memtable, in bytes: new rows in memory before they are sorted to disk. A start after a kill replays about
  /// as much.
  public var memtableBytes: Int
  /// The number of threads for reads that memory cannot serve.
  public var readerThreads: Int
  /// Whether commits are synced. The durability tests turn it off to prove that they detect a missing sync.
  package var syncsCommits = true
  /// The maximum number of open tables; nil for ``OpenFileBudget/tables``. Set by tests only.
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
