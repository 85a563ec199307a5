// Reads the changes between two versions in batches, for delivery to a stream's targets.
//
// Invariant: if only names are pending, at most one batch of their documents is in memory.

import FirestoreModel
import OrderedStore

/// The changes between two versions.
enum PendingChanges {
  /// Merged changes with their documents.
  case merged(SnapshotDelta)
  /// The names of documents that may have changed since a version.
  case names([ResourcePath], since: Version)

  /// The changed documents that a target selects by name, or on which its permission depends.
  func named(by target: ActiveTarget) -> [ResourcePath] {
    switch self {
    case .merged(let delta): delta.named.filter(target.dependsOnDocument)
    case .names(let paths, _): paths.filter(target.dependsOnDocument)
    }
  }
}

/// Reads pending changes batch by batch.
struct ChangeBatches {
  private let database: FirestoreDatabase
  private let targets: [ActiveTarget]
  private let version: Version
  private var merged: SnapshotDelta?
  private var rest: ArraySlice<DocumentName> = []
  private var start = Version.zero
  private let pages: ResultPages

  /// - Parameter pages: reserves the memory of each batch.
  init(
    _ changes: PendingChanges, for targets: [ActiveTarget], to version: Version, _ pages: ResultPages,
    _ database: FirestoreDatabase
  ) {
    self.pages = pages
    self.database = database
    self.targets = targets
    self.version = version
    switch changes {
    case .merged(let delta): merged = delta
    case .names(let paths, let since):
      rest = paths.compactMap { DocumentName(database: database.name, path: $0) }[...]
      start = since
    }
  }

  /// The next batch; nil after the last. The memory reserved for it is released at the next call, or earlier by
  /// `ResultPages.markAccepted`.
  /// - Throws: ``StoreError/versionTooOld`` if history does not reach back to the start.
  mutating func next() async throws -> SnapshotDelta? {
    if let delta = merged {
      merged = nil
      let bytes = delta.entries.reduce(0) { $0 + ($1.after?.encoded.count ?? 0) }
      if bytes > EngineLimits.watchBufferAllowance { pages.hold(bytes, count: delta.entries.count) }
      return delta
    }
    guard !rest.isEmpty else { return nil }
    let changes = try await Self.read(rest, from: start, to: version, pages, database)
    rest = rest.dropFirst(changes.count)
    return try SnapshotDelta(changes, targets)
  }

  /// Reads documents at two versions, in the order of `names`. Stops after the document that fills the page at one of the
  /// versions, so that at least one document is read.
  static func read(
    _ names: ArraySlice<DocumentName>, from start: Version, to version: Version, _ pages: ResultPages,
    _ database: FirestoreDatabase
  ) async throws -> [CommittedChange] {
    try await pages.reserve()
    let limit = min(database.options.watchBufferLimits.maximumReadBytes, pages.maximumBytes)
    let before = try await database.documents(names, at: start, upTo: limit)
    let after = try await database.documents(names.prefix(before.count), at: version, upTo: limit)
    let bytes = (before + after).reduce(0) { $0 + ($1?.encoded.count ?? 0) }
    pages.hold(bytes, count: before.count + after.count)
    return zip(names, zip(before, after)).map { name, documents in
      CommittedChange(name: name, before: documents.0, after: documents.1)
    }
  }
}
