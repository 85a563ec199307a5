// A batch of the mutation queue: writes that succeed or fail together.

import FirestoreModel

/// Writes that are sent, acknowledged or rejected together.
struct MutationBatch: Sendable, Equatable {
  let id: BatchID
  let localWriteTime: ModelTimestamp
  /// Writes with the values from which increments start. They are applied locally before `writes`, and are
  /// never sent.
  let baseWrites: [Write]
  let writes: [Write]

  /// The documents that the batch changes, without duplicates, in the order of their first write.
  var documents: [DocumentName] {
    var seen: Set<DocumentName> = []
    return writes.map(\.document).filter { seen.insert($0).inserted }
  }

  func applyLocally(to document: inout CachedDocument, touched: TouchedFields) -> TouchedFields {
    var touched = touched
    for write in baseWrites where write.document == document.name {
      touched = write.applyLocally(to: &document, touched: touched, at: localWriteTime)
    }
    for write in writes where write.document == document.name {
      touched = write.applyLocally(to: &document, touched: touched, at: localWriteTime)
    }
    return touched
  }

  func applyAcknowledged(
    to document: inout CachedDocument, results: [WriteResult], commitTime: ModelTimestamp
  ) {
    for (index, write) in writes.enumerated() where write.document == document.name {
      let result = index < results.count ? results[index] : WriteResult(updateTime: nil)
      write.applyAcknowledged(to: &document, result: result, version: result.updateTime ?? commitTime)
    }
  }
}

/// The single write with the effect of all pending writes of one document, and the newest batch that it
/// includes.
struct Overlay: Sendable, Equatable {
  let batch: BatchID
  let write: Write
}
