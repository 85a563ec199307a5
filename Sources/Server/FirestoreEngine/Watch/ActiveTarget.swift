// The state that a Listen stream keeps for one active target.

import FirestoreModel
import OrderedStore

/// An active target. It does not store its result documents: a change contains the document before and after,
/// which shows whether the document was and is in the result. For a query with a limit or offset it stores
/// the boundaries of the visible results.
struct ActiveTarget {
  let id: Int32
  /// The number by which the database's `WatchHub` identifies the target among the targets of all streams.
  let registration: Int
  let selection: WatchSelection
  let once: Bool
  /// The bytes of the request that added the target.
  let bytes: Int
  /// The approximate memory of the target: its request, and its entries in the target index.
  var heldBytes: Int { 2 * bytes + 1_024 + (projection?.heldBytes ?? 0) }
  /// Documents that the access policy read to permit this target. Their changes may revoke the permission.
  var dependencies: Set<ResourcePath> = []
  /// Whether the access policy read the time to permit this target.
  var dependsOnTime = false
  /// The part of the query's matches that limit and offset make visible; nil if all are visible.
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

  /// Whether the target selects a document, by its name or by the query's filter. Limit and offset are
  /// ignored.
  func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    query?.matches(name, fields) ?? documents.contains(name.path)
  }

  /// Whether the target depends on a named document: it listens to it, or its permission depends on it.
  func dependsOnDocument(_ path: ResourcePath) -> Bool {
    documents.contains(path) || dependencies.contains(path)
  }
}
