// What a stream keeps of one of its targets.

import FirestoreModel
import OrderedStore

/// An active target. Queries without limit keep nothing of their result: a change says itself whether the document
/// was in and is in. With a limit the result is kept, since one document's change moves others in and out.
struct ActiveTarget {
  let id: Int32
  let registration: Int
  let selection: WatchSelection
  let once: Bool
  /// Further documents that the permission depends on.
  var dependencies: [DocumentName] = []
  /// The result in order, for queries with a limit or offset.
  var window: [StoredDocument] = []

  /// The query, if the target is one.
  var query: PreparedQuery? {
    if case .query(let query) = selection { return query }
    return nil
  }

  /// Whether the target's result is a window on its query's matches.
  var isWindow: Bool { query?.isWindow ?? false }

  /// What documents look like to this target.
  var projection: [FieldPath]? { query?.projection }

  /// Whether the document at a path is in by name or condition, limits not counted.
  func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    switch selection {
    case .documents(let names): names.contains(name)
    case .query(let query): query.matches(name, fields)
    }
  }

  /// Whether a change can show in the window: not if the document was not in it and now sorts behind its end.
  func windowIsTouched(by name: DocumentName, _ after: StoredDocument?) -> Bool {
    guard let query else { return false }
    if window.contains(where: { $0.name == name }) { return true }
    guard let after, let fields = try? after.fields(), query.matches(name, fields) else {
      // With an offset, what goes before the window moves it.
      return query.skips
    }
    guard let limit = query.limit, window.count >= limit, let last = window.last,
      let lastFields = try? last.fields()
    else { return true }
    return query.skips || query.compare((name, fields), (last.name, lastFields)) == .ascending
  }
}
