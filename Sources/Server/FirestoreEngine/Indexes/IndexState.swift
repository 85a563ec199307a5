// Which indexes a database has, and how far it is on the way to those that it should have. One row, changed only in the
// sequencer.
//
// A change of the configuration goes through three phases, each over all documents that it concerns:
//   building   entries of the new plan are added where they are missing; writes keep both plans' entries, queries use
//              what both plans have;
//   retiring   the new plan is complete and used; writes keep both plans' entries, until no transaction is left that
//              may hold locks on ranges of the old one;
//   clearing   entries that the new plan lacks are removed, of composite indexes by their numbers; writes keep the new
//              plan's only.
// A change on the way makes the plan so far one of those whose entries are cleared in the end.
//
// Invariants
//   1. Every document has all entries of each complete plan, and none but those of the plans that are kept.
//   2. What queries use at a version had all its entries at that version.

import FirestoreModel
import OrderedStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The indexes of a database, as stored.
struct IndexState: Codable, Sendable, Equatable {
  /// Which of a field's automatic entries are kept.
  struct Override: Codable, Sendable, Hashable {
    var collectionID: String
    /// The field's names; none for all fields.
    var field: [String]
    var value: Bool
    var elements: Bool
  }

  /// A composite index.
  struct Composite: Codable, Sendable, Equatable {
    var number: UInt32
    var index: CompositeIndex
    /// The version from which it is complete; nil before.
    var readySince: UInt64?
    /// Why it cannot be built.
    var failure: String?
  }

  /// One way to index a database.
  struct Plan: Codable, Sendable, Equatable {
    var overrides: [Override] = []
    var composites: Set<UInt32> = []
  }

  /// What the maintainer is doing. The raw values are stored.
  enum Phase: String, Codable, Sendable {
    case stable = "settled"
    case building
    case waitingForTransactions = "retiring"
    case clearing
  }

  /// How far the phase has come.
  struct Progress: Codable, Sendable, Equatable {
    /// Which collection group is gone over; those before it, by the bytes of their ids, are done.
    var group = ""
    /// The last group row that was.
    var last: [UInt8] = []
    /// Documents so far, all groups together.
    var documents = 0

    /// Notes that the document of a group row is done.
    mutating func pass(_ row: [UInt8], in group: String) {
      self.group = group
      last = row
      documents += 1
    }
  }

  var phase = Phase.stable
  /// A complete plan; while retiring and later the target.
  var base = Plan()
  /// The plan that should hold.
  var target = Plan()
  /// Plans of which entries may be left.
  var stale: [Plan] = []
  /// All indexes that these plans name and that writes keep.
  var composites: [Composite] = []
  /// Numbers of indexes that nobody keeps any more, whose rows are to be removed.
  var droppedNumbers: [UInt32] = []
  var nextNumber: UInt32 = 1
  /// The version from which the target's automatic entries are complete.
  var automaticSince: UInt64 = 0
  /// When retiring began, in the engine's time.
  var waitingSince: UInt64 = 0
  var progress = Progress()

  /// The names in the stored row.
  private enum CodingKeys: String, CodingKey {
    case phase, base, target, stale, composites, nextNumber, automaticSince, progress
    case droppedNumbers = "dead"
    case waitingSince = "retiringSince"
  }

  // MARK: Changes

  /// The state after a configuration was chosen; nil if it is what holds or comes already.
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
    // Without documents there is nothing to go over.
    return isEmpty ? state.built(at: version, now: 0).retired().stable() : state
  }

  /// The state once all entries of the target were added.
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

  /// The state once nobody uses the old plans any more.
  func retired() -> IndexState {
    var state = self
    state.phase = .clearing
    state.progress = Progress()
    state.droppedNumbers += composites.map(\.number).filter { !target.composites.contains($0) }
    state.composites.removeAll { !target.composites.contains($0.number) }
    return state
  }

  /// The state once the old plans' entries were removed.
  func stable() -> IndexState {
    var state = self
    state.phase = .stable
    state.base = target
    state.stale = []
    state.droppedNumbers = []
    state.progress = Progress()
    return state
  }

  /// The state after an index could not be built: what there is of it goes; it is tried again under another number.
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

  /// The plan of a configuration; numbers the indexes that are new.
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
      if let known = composites.first(where: { $0.index == index }) {
        plan.composites.insert(known.number)
      } else {
        composites.append(Composite(number: nextNumber, index: index))
        plan.composites.insert(nextNumber)
        nextNumber += 1
      }
    }
    return plan
  }

  /// All plans of which there may be entries.
  var plans: [Plan] { [base, target] + stale }

  /// The ids of the collection groups in which the plans differ, in a fixed order.
  var concernedGroups: [String] {
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
  /// - Throws: DATA_LOSS if the bytes are none.
  static func decode(_ row: StoredValue) throws(FirestoreError) -> IndexState {
    do { return try JSONDecoder().decode(IndexState.self, from: Data(row)) } catch {
      throw FirestoreError(.dataLoss, "The row that names the database's indexes cannot be read.")
    }
  }
}

extension DatabaseIndexConfiguration {
  /// The indexes that have rows of their own: composite ones, and those of single fields in collection groups.
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
