// Transaction options: whether a transaction writes, and how it reads.

/// The mode of a transaction.
public enum TransactionOptions: Hashable, Sendable {
  /// How a read-write transaction protects its reads from other writes.
  public enum ConcurrencyMode: Hashable, Sendable {
    /// The database's default.
    case unspecified
    /// No locks: the commit checks that the documents read are unchanged.
    case optimistic
    /// Reads take locks.
    case pessimistic
  }

  /// Reads and writes. `retrying` is the token of an aborted attempt. The transaction gets the age of that attempt,
  /// because older transactions win lock conflicts.
  case readWrite(retrying: [UInt8]? = nil, concurrency: ConcurrencyMode = .unspecified)
  /// Only reads, all at one time: `readTime`, or by default the time of the first read.
  case readOnly(readTime: Timestamp? = nil)
}

/// The state of the database that a read returns.
public enum ReadConsistency: Hashable, Sendable {
  /// The newest state.
  case latest
  /// The state that the running transaction with this token sees.
  case transaction([UInt8])
  /// The state that a new transaction sees. This read begins the transaction.
  case newTransaction(TransactionOptions)
  /// The state at a past time.
  case readTime(Timestamp)
}
