public import OrderedStore

/// How the embedded store uses the machine.
public struct EmbeddedOptions: Sendable {
  /// What every store takes: the clock, where reports go.
  public var store: StoreOptions
  /// The bytes of stored blocks kept in memory; nil for a quarter of what the process may use.
  public var blockCacheBytes: Int?
  /// The bytes of new rows kept in memory before they are sorted to disk. A start after a kill replays about as much.
  public var memtableBytes: Int
  /// The threads that serve reads which memory cannot.
  public var readerThreads: Int
  /// Whether commits are synced. Only the durability tests turn it off, to show that they would notice.
  package var syncsCommits = true
  /// The tables that may be open; nil for the store's share of what the process may open. Only tests set it.
  package var openTables: Int?

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
