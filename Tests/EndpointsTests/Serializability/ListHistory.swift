// What concurrent transactions over lists did and saw. Each transaction reads lists and appends values that no other
// ever appends, so that what it read tells which transactions came before it.

/// A list's name: the number of its document.
typealias ListKey = Int

/// One attempt of a transaction.
struct ListTransaction: Sendable {
  enum Outcome: Sendable, Equatable {
    /// Acknowledged, with its commit time in microseconds.
    case committed(at: Int64)
    /// Refused: nothing of it may ever be seen.
    case aborted
    /// The answer was lost: it may have happened, or not, but not in part.
    case unknown
  }

  var id: Int
  /// Lists as they were before the transaction's own appends.
  var reads: [ListKey: [Int64]] = [:]
  /// At most one value for each list.
  var appends: [ListKey: Int64] = [:]
  var outcome = Outcome.unknown
  /// When it began and ended, by one clock for all.
  var began: UInt64 = 0
  var ended: UInt64 = .max
}

/// A contradiction to serializability, in words.
struct Anomaly: Equatable, CustomStringConvertible {
  enum Kind: String { case abortedRead, duplicate, incompatibleOrder, lostAppend, partial, cycle, commitTime }

  var kind: Kind
  var detail: String
  var description: String { "\(kind.rawValue): \(detail)" }
}
