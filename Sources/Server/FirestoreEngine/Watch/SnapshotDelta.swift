// Waiting changes, merged by document: what held before the first of them and what holds after the last.

import FirestoreModel
import OrderedStore

/// The net effect of some commits on a stream's targets.
struct SnapshotDelta {
  /// What became of one document for one target.
  struct Effect {
    var registration: Int
    /// Whether the target held it at the start, and holds it at the end, limits not counted.
    var wasIn: Bool
    var isIn: Bool
  }

  /// What became of one document.
  struct Entry {
    let name: DocumentName
    /// The document at the start; nil if it did not exist then, or no target held it.
    let before: StoredDocument?
    /// The document at the end; nil if it does not exist then.
    var after: StoredDocument?
    var effects: [Effect] = []
  }

  /// Each document once.
  private(set) var entries: [Entry] = []
  /// The changed documents that targets named, be it as what they listen to or as what their permission depends on.
  private(set) var named: Set<ResourcePath> = []

  /// Merges changes as the hub found them.
  init(_ matches: [WatchMatch]) {
    struct Place: Hashable {
      var entry: Int
      var registration: Int
    }
    var positions: [ResourcePath: Int] = [:]
    var places: [Place: Int] = [:]
    for match in matches {
      let name = match.change.name
      if match.isNamed { named.insert(name.path) }
      guard match.before || match.after else { continue }
      let position: Int
      if let known = positions[name.path] {
        position = known
        // A target that the document left hears no more of it: what became of it since, others say.
        entries[position].after = match.change.after
      } else {
        position = entries.count
        positions[name.path] = position
        // Whoever held it at the start was told of its first change, which is this one.
        entries.append(Entry(name: name, before: match.change.before, after: match.change.after))
      }
      let place = Place(entry: position, registration: match.registration)
      if let index = places[place] {
        entries[position].effects[index].isIn = match.after
      } else {
        places[place] = entries[position].effects.count
        entries[position].effects.append(
          Effect(registration: match.registration, wasIn: match.before, isIn: match.after))
      }
    }
  }

  /// Works out what changes mean to targets, for changes that the hub has only kept the names of.
  init(_ changes: [CommittedChange], _ targets: [ActiveTarget]) throws {
    for change in changes {
      // The same version of the document at both ends: nothing has happened to it.
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
