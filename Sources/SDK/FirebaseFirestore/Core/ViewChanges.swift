// The changes between two states of a view, merged for each document.

import FirestoreModel

/// One document's change in a view.
struct ViewChange: Equatable, Sendable {
  /// The kinds of changes, in the order in which listeners receive them.
  enum Kind: Int, Sendable {
    case removed, added, modified, metadata

    /// The position of the kind in that order. Metadata changes are sorted together with modifications.
    var rank: Int { self == .metadata ? Kind.modified.rawValue : rawValue }
  }

  var kind: Kind
  var document: CachedDocument
}

/// Collects changes. Each document has at most one change.
struct ViewChangeSet: Sendable {
  private(set) var changes: [DocumentName: ViewChange] = [:]

  /// Merges a change into the existing change of the document.
  mutating func track(_ kind: ViewChange.Kind, _ document: CachedDocument) {
    let name = document.name
    guard let old = changes[name] else {
      changes[name] = ViewChange(kind: kind, document: document)
      return
    }
    switch (old.kind, kind) {
    case (.metadata, let new) where new != .added:
      changes[name] = ViewChange(kind: new, document: document)
    case (let before, .metadata) where before != .removed:
      changes[name] = ViewChange(kind: before, document: document)
    case (.modified, .modified), (.removed, .added):
      changes[name] = ViewChange(kind: .modified, document: document)
    case (.added, .modified):
      changes[name] = ViewChange(kind: .added, document: document)
    case (.added, .removed):
      changes[name] = nil
    case (.modified, .removed):
      changes[name] = ViewChange(kind: .removed, document: old.document)
    default:
      // A view never removes or adds the same document twice. If it did, the newer change would apply.
      changes[name] = ViewChange(kind: kind, document: document)
    }
  }

  /// The changes for listeners: removals, additions, modifications, each in the order of the query.
  func sorted(by query: ClientQuery) -> [ViewChange] {
    changes.values.sorted { a, b in
      a.kind.rank != b.kind.rank
        ? a.kind.rank < b.kind.rank : query.compare(a.document, b.document) == .ascending
    }
  }
}
