// One bounded step of trimming: look at some rows of a space, delete those at or below the floor.

/// The steps of a ``Trimmer``.
struct Trimming: Sendable {
  private let engine: any StorageEngine
  private let pipeline: CommitPipeline
  private let options: StoreOptions

  init(_ engine: any StorageEngine, _ pipeline: CommitPipeline, _ options: StoreOptions) {
    self.engine = engine
    self.pipeline = pipeline
    self.options = options
  }

  /// Looks at rows from a position on; returns where to go on, nil at the end.
  func step(_ core: DatabaseCore, _ space: KeySpace, from position: Key, upTo floor: Version) throws -> Key? {
    guard pipeline.failure == nil, let published = try? core.publishedState.publishedView() else { return nil }
    let cursor = try published.snapshot.cursor(from: position, to: core.layout.end(of: space), .disk)
    let batch = engine.makeBatch()
    var next: Key?
    var looked = 0
    try cursor.seekToFirst()
    while cursor.isValid {
      let key = cursor.key
      guard looked < Trimmer.stepRows else {
        next = Key(key)
        break
      }
      looked += 1
      guard key.count >= StorageKeyLayout.prefixLength + 8 else { throw RowReader.damage }
      if StorageKeyLayout.version(in: key, at: key.count - 8) <= floor {
        batch.delete(key)
      } else if space == .log {
        break
      }
      try cursor.next()
    }
    guard !batch.isEmpty else { return next }
    CatalogueRows.putFloor(floor, of: core.layout.number, in: batch)
    do {
      try engine.commit(batch)
    } catch {
      throw pipeline.fail(error as? StoreError ?? StoreError.unavailable("\(error)"))
    }
    return next
  }
}
