// The index state of a database: the configured indexes, and how far their entries are built. It is stored in
// one row and changed only in the sequencer.
//
// A *plan* is the set of indexes of one configuration: which fields have automatic entries, and which
// composite indexes exist.
//
// A configuration change passes through three phases, each over all affected documents:
//
//     building                adds the entries of the new plan that are missing. Writes maintain the entries of both
//                             plans. Queries use only the entries that both plans have.
//     waitingForTransactions  the new plan is complete, and queries use it. Writes still maintain the entries of both
//                             plans, until no transaction can hold locks on index ranges of the old plan.
//     clearing                removes the entries that the new plan lacks. Writes maintain only the new plan. All rows
//                             of a dropped composite index are removed by the index's number.
//
// If the configuration changes again during these phases, the unfinished plan becomes stale. The entries of
// all stale plans are removed in the `clearing` phase.
//
// Invariants
// 1. Every document has all entries of the `base` plan. It has no entries other than those of the plans in
//    `plans` and of composite indexes in `droppedNumbers`.
// 2. If a query at a version uses an index, the index had all its entries at that version.

import FirestoreModel
import OrderedStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The stored index state of a database.
struct IndexState: Codable, Sendable, Equatable {
  /// The automatic entries of one field.
  struct Override: Codable, Sendable, Hashable {
    var collectionID: String
    /// The field's path; empty for all fields.
    var field: [String]
    var value: Bool
    var elements: Bool
  }

  /// A composite index and its build state.
  struct Composite: Codable, Sendable, Equatable {
    var number: UInt32
    var index: CompositeIndex
    /// The version from which the index is complete; nil if it is incomplete.
    var readySince: UInt64?
    /// The error that ended its build; nil for none.
    var failure: String?
  }

  /// The automatic and composite indexes of one configuration.
  struct Plan: Codable, Sendable, Equatable {
    var overrides: [Override] = []
    var composites: Set<UInt32> = []
  }

  /// The current phase. The raw values are stored.
  enum Phase: String, Codable, Sendable {
    case stable = "settled"
    case building
    case waitingForTransactions = "retiring"
    case clearing
  }

  /// The progress of the current phase.
  struct Progress: Codable, Sendable, Equatable {
    /// The id of the collection group in progress. The groups whose ids precede it in byte order are done.
    var group = ""
    /// The key of the last processed group row: the row by which collection group queries find a document.
    var last: [UInt8] = []
    /// Processed documents of all groups.
    var documents = 0

    /// Records that the document of a group row is done.
    mutating func markDone(_ row: [UInt8], in group: String) {
      self.group = group
      last = row
      documents += 1
    }
  }

  var phase = Phase.stable
  /// A plan whose entries are complete. From the phase `waitingForTransactions` on, it is the target plan.
  var base = Plan()
  /// The configured plan.
  var target = Plan()
  /// Earlier plans whose entries may remain in the store.
  var stale: [Plan] = []
  /// The composite indexes of `base`, `target` and the stale plans. Writes maintain their entries.
  var composites: [Composite] = []
  /// Numbers of dropped composite indexes whose rows have not been removed yet.
  var droppedNumbers: [UInt32] = []
  var nextNumber: UInt32 = 1
  /// The version from which the target's automatic entries are complete.
  var automaticSince: UInt64 = 0
  /// When `waitingForTransactions` began, in the engine's time.
  var waitingSince: UInt64 = 0
  var progress = Progress()

  /// The names in the stored row.
  private enum CodingKeys: String, CodingKey {
    case phase, base, target, stale, composites, nextNumber, automaticSince, progress
    case droppedNumbers = "dead"
    case waitingSince = "retiringSince"
  }

  // MARK: Changes

  /// The state after a configuration was set; nil if it is the current target.
  func reconfigured(_ configuration: DatabaseIndexConfiguration, isEmpty: Bool, at version: Version)
    -> IndexState?
  {
    var state = self
    let chosen = state.plan(configuration)
    guard chosen != target || (phase == .building && composites.contains { $0.failure != nil }) else {
      return nil
    }
    if phase == .building { state.stale.append(target) }
    state.target = chosen
    state.phase = .building
    state.progress = Progress()
    for index in state.composites.indices { state.composites[index].failure = nil }
    // An empty database has no entries to build or remove, so all phases are complete.
    return isEmpty ? state.built(at: version, now: 0).clearing().stable() : state
  }

  /// The state after all entries of the target were added.
  func built(at version: Version, now: UInt64) -> IndexState {
    var state = self
    if Set(base.overrides) != Set(target.overrides) { state.automaticSince = version.microseconds }
    state.stale = stale + [base]
    state.base = target
    for index in state.composites.indices where target.composites.contains(state.composites[index].number) {
      let composite = state.composites[index]
      if composite.readySince == nil, composite.failure == nil {
        state.composites[index].readySince = version.microseconds
      }
    }
    state.phase = .waitingForTransactions
    state.waitingSince = now
    state.progress = Progress()
    return state
  }

  /// The state after all transactions of the old plans have ended.
  func clearing() -> IndexState {
    var state = self
    state.phase = .clearing
    state.progress = Progress()
    state.droppedNumbers += composites.map(\.number).filter { !target.composites.contains($0) }
    state.composites.removeAll { !target.composites.contains($0.number) }
    return state
  }

  /// The state after the old plans' entries were removed.
  func stable() -> IndexState {
    var state = self
    state.phase = .stable
    state.base = target
    state.stale = []
    state.droppedNumbers = []
    state.progress = Progress()
    return state
  }

  /// The state after an index build failed. The index's rows will be removed. The index gets a new number, so
  /// that a later build starts without rows.
  func failing(_ number: UInt32, because reason: String) -> IndexState {
    var state = self
    guard let index = composites.firstIndex(where: { $0.number == number }) else { return self }
    state.composites[index].number = nextNumber
    state.composites[index].failure = reason
    state.composites[index].readySince = nil
    state.droppedNumbers.append(number)
    func renumber(_ plan: inout Plan) {
      if plan.composites.remove(number) != nil { plan.composites.insert(nextNumber) }
    }
    renumber(&state.base)
    renumber(&state.target)
    for index in state.stale.indices { renumber(&state.stale[index]) }
    state.nextNumber += 1
    return state
  }

  /// The plan of a configuration. Assigns numbers to new composite indexes.
  private mutating func plan(_ configuration: DatabaseIndexConfiguration) -> Plan {
    var plan = Plan()
    plan.overrides = configuration.overrides.map { override in
      let own = override.indexes.filter { $0.scope == .collection }
      return Override(
        collectionID: override.collectionID, field: override.field?.segments ?? [],
        value: own.contains { $0.mode == .ascending || $0.mode == .descending },
        elements: own.contains { $0.mode == .contains })
    }
    for index in configuration.compositeIndexes {
      if let existing = composites.first(where: { $0.index == index }) {
        plan.composites.insert(existing.number)
      } else {
        composites.append(Composite(number: nextNumber, index: index))
        plan.composites.insert(nextNumber)
        nextNumber += 1
      }
    }
    return plan
  }

  /// All plans whose entries documents may have.
  var plans: [Plan] { [base, target] + stale }

  /// The ids of the collection groups that any plan configures, ordered by their bytes.
  var configuredGroups: [String] {
    var groups: Set<[UInt8]> = []
    for plan in plans {
      for override in plan.overrides { groups.insert(Array(override.collectionID.utf8)) }
    }
    for composite in composites { groups.insert(Array(composite.index.collectionID.utf8)) }
    return groups.sorted { $0.lexicographicallyPrecedes($1) }.map { String(decoding: $0, as: UTF8.self) }
  }

  // MARK: Rows

  /// The row's bytes.
  func encoded() throws -> StoredValue { [UInt8](try JSONEncoder().encode(self)) }

  /// The state in a row.
  /// - Throws: DATA_LOSS if the bytes are not an index state.
  static func decode(_ row: StoredValue) throws(FirestoreError) -> IndexState {
    do { return try JSONDecoder().decode(IndexState.self, from: Data(row)) } catch {
      throw FirestoreError(.dataLoss, "The stored index state of the database cannot be read.")
    }
  }
}

extension DatabaseIndexConfiguration {
  /// The indexes that have rows: composite indexes, and single-field indexes of collection groups.
  var compositeIndexes: [CompositeIndex] {
    var seen: Set<CompositeIndex> = []
    func mode(_ mode: Mode) -> CompositeIndex.Mode? {
      switch mode {
      case .ascending: .ascending
      case .descending: .descending
      case .contains: .contains
      case .vector: nil
      }
    }
    var all: [CompositeIndex] = []
    for index in indexes {
      let parts = index.fields.compactMap { field in
        mode(field.mode).map { CompositeIndex.Part(field.path, $0) }
      }
      guard parts.count == index.fields.count else { continue }
      all.append(
        CompositeIndex(
          collectionID: index.collectionID, scope: index.scope, parts: parts,
          namesDescend: index.nameDirection == .descending))
    }
    for override in overrides {
      guard let field = override.field else { continue }
      for index in override.indexes where index.scope == .collectionGroup {
        guard let mode = mode(index.mode) else { continue }
        all.append(
          CompositeIndex(
            collectionID: override.collectionID, scope: .collectionGroup,
            parts: [CompositeIndex.Part(field, mode)], namesDescend: mode == .descending))
      }
    }
    return all.map(\.canonical).filter { seen.insert($0).inserted }
  }
}
