// What a stream keeps of one of its targets.

import FirestoreModel
import OrderedStore

/// An active target. It keeps nothing of its result: a change says itself whether the document was in and is in. With
/// a limit or offset it keeps where its window begins and ends.
struct ActiveTarget {
  let id: Int32
  let registration: Int
  let selection: WatchSelection
  let once: Bool
  /// The size of the request that asked for it.
  let bytes: Int
  /// About what the target takes up: its request read, and its places in the indexes of targets.
  var heldBytes: Int { 2 * bytes + 1_024 + (projection?.heldBytes ?? 0) }
  /// Further documents that the permission depends on.
  var dependencies: Set<ResourcePath> = []
  /// The part of the query's matches that is shown, if it is not all of them.
  var window: ResultWindow?
  private let documents: Set<ResourcePath>

  init(id: Int32, registration: Int, _ selection: WatchSelection, once: Bool, bytes: Int) {
    self.id = id
    self.registration = registration
    self.selection = selection
    self.once = once
    self.bytes = bytes
    switch selection {
    case .documents(let names): documents = Set(names.map(\.path))
    case .query(let query):
      documents = []
      if query.isWindow { window = ResultWindow(query) }
    }
  }

  /// The query, if the target is one.
  var query: PreparedQuery? {
    if case .query(let query) = selection { return query }
    return nil
  }

  /// What documents look like to this target.
  var projection: FieldMask? { query?.projection }

  /// Whether a document is in by name or condition, limits not counted.
  func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    query?.matches(name, fields) ?? documents.contains(name.path)
  }

  /// Whether the target names a document, be it as what it listens to or as what its permission depends on.
  func names(_ path: ResourcePath) -> Bool { documents.contains(path) || dependencies.contains(path) }
}
