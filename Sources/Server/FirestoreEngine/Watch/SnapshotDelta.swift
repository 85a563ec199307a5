// Computes the net effect of several changes on a stream's targets. For each document it stores the state
// before the first change and after the last.

import FirestoreModel
import OrderedStore

/// The net changes between two snapshots of a stream's targets.
struct SnapshotDelta {
  /// The effect on one document in one target.
  struct Effect {
    var registration: Int
    /// Whether the target matched the document at the start and at the end, ignoring the limit.
    var wasIn: Bool
    var isIn: Bool
  }

  /// The change of one document.
  struct Entry {
    let name: DocumentName
    /// The document at the start; nil if it did not exist, or no target matched it.
    let before: StoredDocument?
    /// The document at the end; nil if it does not exist.
    var after: StoredDocument?
    var effects: [Effect] = []
  }

  /// One entry for each document.
  private(set) var entries: [Entry] = []
  /// Changed documents that a target selects by name, or on which its permission depends.
  private(set) var named: Set<ResourcePath> = []

  /// Merges the changes that `WatchHub` found to affect the stream's targets.
  init(_ matches: [WatchMatch]) {
    struct EffectKey: Hashable {
      var entry: Int
      var registration: Int
    }
    var entryIndices: [ResourcePath: Int] = [:]
    var effectIndices: [EffectKey: Int] = [:]
    for match in matches {
      let name = match.change.name
      if match.isNamed { named.insert(name.path) }
      guard match.before || match.after else { continue }
      let entryIndex: Int
      if let existing = entryIndices[name.path] {
        entryIndex = existing
        // The match of any target updates `after`. The target whose match made the entry may no longer contain the
        // document, and then receives no match of later changes.
        entries[entryIndex].after = match.change.after
      } else {
        entryIndex = entries.count
        entryIndices[name.path] = entryIndex
        // This is the document's first match. If a target contained the document at the start, the document's first
        // change caused this match, so its `before` is the state at the start.
        entries.append(Entry(name: name, before: match.change.before, after: match.change.after))
      }
      let key = EffectKey(entry: entryIndex, registration: match.registration)
      if let index = effectIndices[key] {
        entries[entryIndex].effects[index].isIn = match.after
      } else {
        effectIndices[key] = entries[entryIndex].effects.count
        entries[entryIndex].effects.append(
          Effect(registration: match.registration, wasIn: match.before, isIn: match.after))
      }
    }
  }

  /// Computes the effects of changes for which the buffer kept only the documents' names. The caller has read
  /// the documents again.
  init(_ changes: [CommittedChange], _ targets: [ActiveTarget]) throws {
    for change in changes {
      // Equal times mean that the document did not change.
      if change.before?.updateTime == change.after?.updateTime,
        change.before?.createTime == change.after?.createTime
      {
        continue
      }
      let before = try change.before?.fields()
      let after = try change.after?.fields()
      var entry = Entry(name: change.name, before: change.before, after: change.after)
      for target in targets {
        let wasIn = before.map { target.matches(change.name, $0) } ?? false
        let isIn = after.map { target.matches(change.name, $0) } ?? false
        guard wasIn || isIn else { continue }
        entry.effects.append(Effect(registration: target.registration, wasIn: wasIn, isIn: isIn))
      }
      if !entry.effects.isEmpty { entries.append(entry) }
    }
  }
}
