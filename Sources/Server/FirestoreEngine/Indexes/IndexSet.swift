// The index set of a database: the index state, prepared for fast lookups by writes and queries.
//
// Invariant: the commit that changes the stored index state also replaces the index set, in the sequencer, which runs
// one commit at a time. Therefore every later commit sees the new set. A read at an older version may see a newer set, so
// `mayUse` and `ready` check from which version on an index is complete.

import FirestoreModel
import OrderedStore

/// The indexes of a database.
struct IndexSet: Sendable {
  /// The indexes of one collection group's documents.
  struct Group: Sendable {
    /// The fields with automatic entries; nil if all fields have them.
    var rules: FieldRules?
    var composites: [NumberedIndex] = []

    static let automatic = Group()
  }

  /// A composite index that queries may use.
  struct UsableIndex: Sendable {
    var index: NumberedIndex
    /// The version from which the index is complete.
    var since: Version
  }

  let state: IndexState
  /// The configured vector indexes. They have no rows in the store.
  let vectors: [DatabaseIndexConfiguration.Index]
  /// The collection groups whose documents the current phase has to process, ordered by the bytes of their
  /// ids.
  let pending: [String]
  /// Whether there are only automatic indexes.
  let isAutomaticOnly: Bool
  /// Per collection group, the entries that documents may have.
  private let possible: [[UInt8]: Group]
  /// Per collection group, the entries that writes maintain.
  private let maintained: [[UInt8]: Group]
  /// Per collection group, the entries of the target plan (the configured indexes).
  private let target: [[UInt8]: Group]
  private let usableRules: [[UInt8]: FieldRules]
  private let ready: [[UInt8]: [UsableIndex]]

  /// Automatic indexes only.
  static let automatic = IndexSet(IndexState())

  init(_ state: IndexState, vectors: [DatabaseIndexConfiguration.Index] = []) {
    self.state = state
    self.vectors = vectors
    isAutomaticOnly = state.plans.allSatisfy { $0 == IndexState.Plan() }
    let groups = state.configuredGroups
    possible = IndexSet.groups(groups, state.plans, state)
    target = IndexSet.groups(groups, [state.target], state)
    maintained = state.phase == .clearing || state.phase == .stable ? target : possible
    var usableRules: [[UInt8]: FieldRules] = [:]
    var ready: [[UInt8]: [UsableIndex]] = [:]
    for group in groups {
      let key = Array(group.utf8)
      let target = IndexSet.rules(group, state.target)
      usableRules[key] =
        state.phase == .building ? target.intersection(IndexSet.rules(group, state.base)) : target
      ready[key] = state.composites.compactMap { composite in
        guard composite.index.collectionID.hasSameUTF8(as: group), composite.failure == nil,
          state.target.composites.contains(composite.number), let since = composite.readySince
        else { return nil }
        return UsableIndex(
          index: NumberedIndex(number: composite.number, index: composite.index),
          since: Version(microseconds: since))
      }
    }
    self.usableRules = usableRules
    self.ready = ready
    let (possible, target) = (possible, target)
    pending = groups.filter { group in
      let key = Array(group.utf8)
      let rules = target[key]?.rules ?? .automatic
      switch state.phase {
      case .building:
        let base = IndexSet.rules(group, state.base)
        return rules.intersection(base) != rules || !(IndexSet.unbuilt(state, group).isEmpty)
      case .clearing: return (possible[key]?.rules ?? .automatic) != rules
      case .stable, .waitingForTransactions: return false
      }
    }
  }

  /// The composite indexes of a collection group that are being built.
  static func unbuilt(_ state: IndexState, _ group: String) -> [NumberedIndex] {
    state.composites.filter {
      state.target.composites.contains($0.number) && $0.readySince == nil && $0.failure == nil
        && $0.index.collectionID.hasSameUTF8(as: group)
    }.map { NumberedIndex(number: $0.number, index: $0.index) }
  }

  /// The rules of automatic entries of a collection group in the `base` plan, whose entries are complete.
  static func baseRules(_ state: IndexState, _ group: String) -> FieldRules { rules(group, state.base) }

  private static func rules(_ group: String, _ plan: IndexState.Plan) -> FieldRules {
    FieldRules(plan.overrides.filter { $0.collectionID.hasSameUTF8(as: group) })
  }

  private static func groups(
    _ groups: [String], _ plans: [IndexState.Plan], _ state: IndexState
  ) -> [[UInt8]: Group] {
    let numbers = plans.reduce(into: Set<UInt32>()) { $0.formUnion($1.composites) }
    var result: [[UInt8]: Group] = [:]
    for group in groups {
      let rules = plans.map { self.rules(group, $0) }
      let all = rules.dropFirst().reduce(rules.first ?? .automatic) { $0.union($1) }
      result[Array(group.utf8)] = Group(
        rules: all == .automatic ? nil : all,
        composites: state.composites.filter {
          numbers.contains($0.number) && $0.failure == nil && $0.index.collectionID.hasSameUTF8(as: group)
        }.map { NumberedIndex(number: $0.number, index: $0.index) })
    }
    return result
  }

  /// The entries that documents of a collection may have.
  func possible(in collection: String) -> Group {
    isAutomaticOnly ? .automatic : possible[Array(collection.utf8)] ?? .automatic
  }
  /// The entries that writes maintain for documents of a collection.
  func maintained(in collection: String) -> Group {
    isAutomaticOnly ? .automatic : maintained[Array(collection.utf8)] ?? .automatic
  }
  /// The entries that documents of a collection have for certain: those of all complete plans.
  func required(in collection: String) -> Group {
    if isAutomaticOnly { return .automatic }
    guard state.phase == .building || state.phase == .waitingForTransactions else {
      return target(in: collection)
    }
    let rules = IndexSet.rules(collection, state.base)
    let ready = state.composites.filter {
      $0.readySince != nil && $0.failure == nil && $0.index.collectionID.hasSameUTF8(as: collection)
    }
    return Group(
      rules: rules == .automatic ? nil : rules,
      composites: ready.map { NumberedIndex(number: $0.number, index: $0.index) })
  }

  /// The indexes that writes maintain, by number.
  var indexesByNumber: [UInt32: NumberedIndex] {
    var indexes: [UInt32: NumberedIndex] = [:]
    for composite in state.composites where composite.failure == nil {
      indexes[composite.number] = NumberedIndex(number: composite.number, index: composite.index)
    }
    return indexes
  }

  /// The entries of the target plan for documents of a collection.
  func target(in collection: String) -> Group { target[Array(collection.utf8)] ?? .automatic }

  /// Whether queries at a version may use a field's automatic entries.
  func mayUse(_ field: FieldPath, isElement: Bool, in collection: String, at version: Version) -> Bool {
    if isAutomaticOnly { return version.microseconds >= state.automaticSince }
    guard version.microseconds >= state.automaticSince else { return false }
    guard let rules = usableRules[Array(collection.utf8)] else { return true }
    return isElement ? rules[field].indexesElements : rules[field].indexesValue
  }

  /// The composite indexes of a collection group that queries at a version may use.
  func ready(in collection: String, at version: Version) -> [NumberedIndex] {
    isAutomaticOnly ? [] : (ready[Array(collection.utf8)] ?? []).filter { $0.since <= version }.map(\.index)
  }
}

/// The index entries of one document.
struct DocumentEntries {
  /// Keys in automatic indexes, ascending.
  var automatic: [Key] = []
  /// Rows in composite indexes, ascending.
  var composite: [(key: Key, value: StoredValue)] = []

  /// No entries, for a document that does not exist.
  static let none = DocumentEntries()

  /// - Parameters:
  ///   - limits: limits on the number of entries; nil for a stored document.
  ///   - budget: the commit's budget for these entries; nil outside of commits.
  /// - Throws: INVALID_ARGUMENT above the limits, or if the budget is exhausted.
  init(
    of fields: MapValue, at path: ResourcePath, in group: IndexSet.Group, limits: EngineLimits?,
    budget: CommitCostBudget.EntryBudget? = nil
  ) throws(FirestoreError) {
    automatic = try IndexEntries.keys(
      of: fields, at: path, rules: group.rules, limits: limits, budget: budget)
    guard !group.composites.isEmpty else { return }
    var count = 2 * automatic.count
    var bytes = self.bytes
    for index in group.composites {
      // Array elements combined with long values can be far larger than the document, so entries are counted
      // before they are built.
      let entries = try index.entries(of: fields, at: path, enforcesSizeLimit: limits != nil) {
        more, size throws(FirestoreError) in
        count += more
        bytes += size
        if let limits, count > limits.maximumIndexEntries {
          throw .indexEntryLimit(limits.maximumIndexEntries)
        }
        try budget?.check(bytes)
      }
      for (key, value) in entries { composite.append((key, value)) }
    }
    composite.sort { compareKeys($0.key, $1.key) < 0 }
  }

  /// The bytes of all these rows.
  var bytes: Int {
    composite.reduce(automatic.reduce(0) { $0 + $1.count }) { $0 + $1.key.count + $1.value.count }
  }

  private init() {}
}
