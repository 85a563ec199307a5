// The state that a stream keeps of one target.

import FirestoreModel
import OrderedStore

/// An active target. It keeps none of its result: a change contains enough to decide whether the document was
/// and is in the result. With a limit or offset it keeps the boundaries of its window.
struct ActiveTarget {
  let id: Int32
  let registration: Int
  let selection: WatchSelection
  let once: Bool
  /// The size of the request that added it.
  let bytes: Int
  /// The approximate memory of the target: its request, and its entries in the target index.
  var heldBytes: Int { 2 * bytes + 1_024 + (projection?.heldBytes ?? 0) }
  /// Documents, beyond the selected ones, that the permission depends on.
  var dependencies: Set<ResourcePath> = []
  /// The visible part of the query's matches; nil if all are visible.
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

  /// The query; nil for a target of named documents.
  var query: PreparedQuery? {
    if case .query(let query) = selection { return query }
    return nil
  }

  /// The fields that the target returns; nil for all.
  var projection: FieldMask? { query?.projection }

  /// Whether a document is selected by name or condition, ignoring the limit.
  func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    query?.matches(name, fields) ?? documents.contains(name.path)
  }

  /// Whether the target depends on a named document: it listens to it, or its permission depends on it.
  func names(_ path: ResourcePath) -> Bool { documents.contains(path) || dependencies.contains(path) }
}
