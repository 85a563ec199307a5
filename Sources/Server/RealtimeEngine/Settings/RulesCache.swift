// Caches a database's rules, so that they are read and compiled once after each change.

package import Access
import Locking
import OrderedStore
package import RealtimeModel

/// Makes the policy that enforces a rules file.
package typealias RulesCompiler = @Sendable (RulesFile) -> any AccessPolicy<RealtimeAccess>

/// A stored rules file.
struct StoredRules: Sendable {
  let file: RulesFile
  /// The policy that enforces the file; nil where stored rules only declare indexes.
  let policy: (any AccessPolicy<RealtimeAccess>)?
}

/// The rules of one database that were compiled last.
final class RulesCache: Sendable {
  private struct State {
    /// The rules of the last state that was read, and the version that wrote them.
    var last: (version: Version, rules: StoredRules)?
    /// Rules that were compiled before they are written.
    var prepared: StoredRules?
    /// The canary ruleset (for trials, not in force) of the state that was read last, and the version that wrote the
    /// labels.
    var canary: (version: Version, ruleset: CanaryRuleset?)?
    /// A canary ruleset that was compiled before it is labelled.
    var preparedCanary: CanaryRuleset?
    /// Whether the rules of the state that was read last may deny something to users.
    var mayDeny = true
  }

  private let state = Guarded(State())
  private let compile: RulesCompiler?

  /// - Parameter compile: makes policies; nil if stored rules are not enforced.
  init(_ compile: RulesCompiler? = nil) { self.compile = compile }

  /// Whether stored rules may deny something to users. True until a state was read.
  var mayDeny: Bool { state.withLock { $0.mayDeny } }

  /// The rules of the state that was read last; nil before the first read.
  var latest: StoredRules? { state.withLock { $0.last?.rules } }

  /// Compiles rules that are about to be written. Large files take long, so this runs off the sequencer.
  func prepare(_ file: RulesFile) -> StoredRules {
    let rules = StoredRules(file: file, policy: compile?(file))
    state.withLock { $0.prepared = rules }
    return rules
  }

  /// Compiles a ruleset that is about to receive the label `canary`.
  func prepareCanary(_ id: String, _ file: RulesFile) {
    guard let compile else { return }
    let canary = CanaryRuleset(id: id, policy: compile(file))
    state.withLock { $0.preparedCanary = canary }
  }

  /// Returns the ruleset with the label `canary` in a state; nil without one, or if rules are not enforced.
  ///
  /// - Throws: errors of the store; ``StoreError`` for damaged labels.
  func canary(in view: any ReadView) throws -> CanaryRuleset? {
    guard let compile, let row = try view.get(RowKeys.rulesets) else { return nil }
    let (known, prepared) = state.withLock { ($0.canary, $0.preparedCanary) }
    if let known, known.version == row.writtenAt { return known.ruleset }
    var canary: CanaryRuleset?
    if let id = try RulesetDirectory(in: view).labels.canary {
      if let prepared, prepared.id == id {
        canary = prepared
      } else if let source = try view.get(RowKeys.ruleset(id)), let file = try? RulesFile(Array(source.value))
      {
        canary = CanaryRuleset(id: id, policy: compile(file))
      }
    }
    state.withLock { $0.canary = (row.writtenAt, canary) }
    return canary
  }

  /// Returns the rules of a state, and the version that wrote them; nil if it has none.
  ///
  /// - Throws: errors of the store; ``StoreError`` for a row without a valid rules file.
  func rules(in view: any ReadView) throws -> (version: Version, rules: StoredRules)? {
    guard let row = try view.get(RowKeys.setting(.rules)) else {
      state.withLock { $0.mayDeny = false }
      return nil
    }
    let (last, prepared) = state.withLock { ($0.last, $0.prepared) }
    if let last, last.version == row.writtenAt, last.rules.file.text.utf8.count == row.value.count {
      return last
    }
    let rules: StoredRules
    if let prepared, prepared.file.text.utf8.elementsEqual(row.value) {
      rules = prepared
    } else {
      do throws(RulesError) {
        let file = try RulesFile(row.value)
        rules = StoredRules(file: file, policy: compile?(file))
      } catch { throw StoreError(.corrupted, "the rules of a database cannot be read: \(error)") }
    }
    state.withLock { state in
      state.last = (row.writtenAt, rules)
      state.prepared = nil
      state.mayDeny = rules.policy.map { !$0.allowsEverything(.nobody) } ?? false
    }
    return (row.writtenAt, rules)
  }
}
