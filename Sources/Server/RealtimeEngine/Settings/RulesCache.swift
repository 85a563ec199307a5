// A database's rules, read from their row once for each time they are changed.

import Locking
import OrderedStore
import RealtimeModel

/// The rules that were read last.
final class RulesCache: Sendable {
  private let last = Guarded<(version: Version, rules: RulesFile)?>(nil)

  /// The rules of a state; nil if it has none.
  /// - Throws: what the store throws; ``StoreError`` for a row that holds no rules file.
  func rules(in view: any ReadView) throws -> RulesFile? {
    guard let row = try view.get(RowKeys.setting(.rules)) else { return nil }
    if let last = last.withLock({ $0 }), last.version == row.writtenAt,
      last.rules.text.utf8.count == row.value.count
    {
      return last.rules
    }
    do throws(RulesError) {
      let rules = try RulesFile(row.value)
      last.withLock { $0 = (row.writtenAt, rules) }
      return rules
    } catch { throw StoreError(.corrupted, "the rules of a database cannot be read: \(error)") }
  }
}
