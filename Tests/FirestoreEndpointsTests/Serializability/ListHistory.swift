// The history of concurrent transactions on lists: their reads, appends and outcomes.
//
// Each appended value is unique. Thus a list that a transaction read identifies the transactions before it.

/// The key of a list: the number of its document.
typealias ListKey = Int

/// One attempt of a transaction.
struct ListTransaction: Sendable {
  enum Outcome: Sendable, Equatable {
    /// Acknowledged, with its commit time in microseconds.
    case committed(at: Int64)
    /// Rejected or rolled back: none of its appends may ever be visible.
    case aborted
    /// The response was lost: the transaction was applied completely or not at all.
    case unknown
  }

  var id: Int
  /// The lists that the transaction read, without the values that it appended itself.
  var reads: [ListKey: [Int64]] = [:]
  /// The values that the transaction appended, at most one to each list.
  var appends: [ListKey: Int64] = [:]
  var outcome = Outcome.unknown
  /// The times at which the transaction began and ended, by the same clock for all transactions.
  var began: UInt64 = 0
  var ended: UInt64 = .max
}

/// A violation of serializability, with a description.
struct Anomaly: Equatable, CustomStringConvertible {
  enum Kind: String { case abortedRead, duplicate, incompatibleOrder, lostAppend, partial, cycle, commitTime }

  var kind: Kind
  var detail: String
  var description: String { "\(kind.rawValue): \(detail)" }
}
