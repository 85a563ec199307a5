// Limits events per key, such as a client address: each key has an allowance of events that is restored over time.
//
// Invariant: the memory is bounded. If it is full, keys with a full allowance are dropped first, then the keys with the
// fewest events. So an attacker with many keys cannot restore the allowance of a key that has used it.

import Locking

/// Counts the events of keys.
package final class AllowanceLimiter<Key: Hashable & Sendable>: Sendable {
  private struct Record {
    /// The used part of the allowance, in milliseconds until it is restored.
    var debt: Int64
    /// The time of the latest event, in milliseconds since the Unix epoch.
    var latestEvent: Int64

    /// The debt that remains at a time.
    func debt(at now: Int64) -> Int64 { max(0, debt - max(0, now - latestEvent)) }
  }

  private let isEnabled: Bool
  private let allowance: Int64
  private let restorationMilliseconds: Int64
  private let maximumRecords: Int
  private let records = Guarded<[Key: Record]>([:])

  /// Creates a limiter.
  /// - Parameters:
  ///   - isEnabled: false for an emulator, whose clients may cause any number of events.
  ///   - allowance: the number of events of a key before the key must wait.
  ///   - restorationMilliseconds: the milliseconds after which a key regains one event.
  ///   - maximumRecords: maximum number of keys in memory, of 100 to 500 bytes each.
  package init(
    isEnabled: Bool, allowance: Int64, restorationMilliseconds: Int64, maximumRecords: Int = 100_000
  ) {
    self.isEnabled = isEnabled
    self.allowance = allowance
    self.restorationMilliseconds = restorationMilliseconds
    self.maximumRecords = maximumRecords
  }

  /// Counts an event, unless its key has used the allowance.
  /// - Parameters:
  ///   - key: nil if the event has no key and is not limited.
  ///   - now: milliseconds since the Unix epoch.
  /// - Returns: whether the event is admitted.
  package func admit(_ key: Key?, at now: Int64) -> Bool {
    guard isEnabled, let key else { return true }
    return records.withLock { records in
      let debt = records[key]?.debt(at: now) ?? 0
      guard debt <= (allowance - 1) * restorationMilliseconds else { return false }
      if records.count >= maximumRecords, records[key] == nil { Self.shrink(&records, at: now) }
      let latest = max(now, records[key]?.latestEvent ?? now)
      records[key] = Record(debt: debt + restorationMilliseconds, latestEvent: latest)
      precondition(records.count <= max(maximumRecords, 1), "invariant: the keys in memory are bounded")
      return true
    }
  }

  /// Restores the allowance for an event that does not count.
  package func refund(_ key: Key?, at now: Int64) {
    guard isEnabled, let key else { return }
    records.withLock { records in
      guard let record = records[key] else { return }
      let debt = record.debt(at: now) - restorationMilliseconds
      records[key] = debt > 0 ? Record(debt: debt, latestEvent: max(now, record.latestEvent)) : nil
    }
  }

  /// Number of keys in memory.
  package var count: Int { records.withLock { $0.count } }

  /// Drops the keys with a full allowance, and then at least half of the others.
  private static func shrink(_ records: inout [Key: Record], at now: Int64) {
    let maximum = records.count / 2
    records = records.filter { $0.value.debt(at: now) > 0 }
    guard records.count > maximum else { return }
    let kept = records.sorted { $0.value.debt(at: now) > $1.value.debt(at: now) }.prefix(maximum)
    records = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
  }
}
