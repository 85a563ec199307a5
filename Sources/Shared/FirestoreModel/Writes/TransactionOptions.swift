// How a transaction begins.

/// The mode of a transaction.
public enum TransactionOptions: Hashable, Sendable {
  /// How a read-write transaction keeps others from its reads.
  public enum ConcurrencyMode: Hashable, Sendable {
    /// The database's default.
    case unspecified
    /// No locks: what was read is checked at commit.
    case optimistic
    /// Reads lock.
    case pessimistic
  }

  /// Reads and writes. `retrying` is the token of the aborted attempt whose age this one inherits.
  case readWrite(retrying: [UInt8]? = nil, concurrency: ConcurrencyMode = .unspecified)
  /// Only reads, all at one time: the given one, else that of the first read.
  case readOnly(readTime: Timestamp? = nil)
}

/// At which state of the database a read looks.
public enum ReadConsistency: Hashable, Sendable {
  /// The newest state.
  case latest
  /// Inside a running transaction.
  case transaction([UInt8])
  /// In a transaction that this read begins.
  case newTransaction(TransactionOptions)
  /// The state at a past time.
  case readTime(Timestamp)
}
