// Waiting changes, merged by document and target: what held before the first of them and what holds after the last.

import FirestoreModel
import OrderedStore

/// The net effect of some commits on a stream's targets.
struct Cut {
  /// What became of one document for one target.
  struct Effect {
    var name: DocumentName
    /// The document at the end; nil if it does not exist then.
    var after: StoredDocument?
    /// Whether the target held it at the start, and holds it at the end, limits not counted.
    var wasIn: Bool
    var isIn: Bool
  }

  /// By registration; each document once.
  private(set) var effects: [Int: [Effect]] = [:]
  /// Registrations of targets that named a changed document.
  private(set) var named: Set<Int> = []

  /// Merges changes as the hub found them.
  init(_ hits: [WatchHit]) {
    var positions: [Int: [ResourcePath: Int]] = [:]
    var latest: [ResourcePath: StoredDocument?] = [:]
    for hit in hits {
      let name = hit.change.name
      latest.updateValue(hit.change.after, forKey: name.path)
      if hit.isNamed { named.insert(hit.registration) }
      if let position = positions[hit.registration]?[name.path] {
        effects[hit.registration]?[position].isIn = hit.after
      } else {
        positions[hit.registration, default: [:]][name.path] = effects[hit.registration]?.count ?? 0
        effects[hit.registration, default: []].append(
          Effect(name: name, after: nil, wasIn: hit.before, isIn: hit.after))
      }
    }
    // A target that a document left hears no more of it: what became of it since, others say.
    for (registration, list) in effects {
      effects[registration] = list.map { effect in
        var effect = effect
        effect.after = latest[effect.name.path] ?? nil
        return effect
      }
    }
  }

  /// Works out what changes mean to targets, for changes that the hub has only kept the names of.
  init(_ changes: [DocumentChange], _ targets: [ActiveTarget]) throws {
    for change in changes {
      // The same version of the document at both ends: nothing has happened to it.
      if change.before?.updateTime == change.after?.updateTime,
        change.before?.createTime == change.after?.createTime
      {
        continue
      }
      let before = try change.before?.fields()
      let after = try change.after?.fields()
      for target in targets {
        if target.dependencies.contains(change.name) { named.insert(target.registration) }
        let wasIn = before.map { target.matches(change.name, $0) } ?? false
        let isIn = after.map { target.matches(change.name, $0) } ?? false
        guard wasIn || isIn else { continue }
        if target.query == nil { named.insert(target.registration) }
        effects[target.registration, default: []].append(
          Effect(name: change.name, after: change.after, wasIn: wasIn, isIn: isIn))
      }
    }
  }
}
