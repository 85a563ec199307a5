// The mutation queue of one user in memory.
//
// Invariant: `order` contains the batch IDs in ascending order, from `head` on. IDs that were removed from
// the middle stay in it until they reach the head. The cost of each operation does not depend on the length
// of the queue.

import FirestoreModel

/// Queued batches by ID and by document.
struct MutationQueue: Sendable {
  private var batches: [BatchID: MutationBatch] = [:]
  private var order: [BatchID] = []
  private var head = 0
  private var idsOfDocument: [DocumentName: [BatchID]] = [:]

  /// The batches in their order.
  var all: [MutationBatch] { order[head...].compactMap { batches[$0] } }
  var last: BatchID? { order[head...].last { batches[$0] != nil } }

  func contains(_ document: DocumentName) -> Bool { idsOfDocument[document] != nil }

  /// The batches that change a document, oldest first.
  func batches(touching document: DocumentName) -> [MutationBatch] {
    (idsOfDocument[document] ?? []).compactMap { batches[$0] }
  }

  /// Adds a batch. Its ID must be higher than all earlier IDs.
  mutating func append(_ batch: MutationBatch) {
    batches[batch.id] = batch
    order.append(batch.id)
    for name in batch.documents { idsOfDocument[name, default: []].append(batch.id) }
  }

  mutating func remove(_ batch: MutationBatch) {
    guard batches.removeValue(forKey: batch.id) != nil else { return }
    for name in batch.documents {
      idsOfDocument[name]?.removeAll { $0 == batch.id }
      if idsOfDocument[name]?.isEmpty == true { idsOfDocument[name] = nil }
    }
    while head < order.count, batches[order[head]] == nil { head += 1 }
    guard head > 64, head > order.count / 2 else { return }
    order.removeFirst(head)
    head = 0
  }

  /// The first batch, or the first batch with a higher ID.
  func batch(after id: BatchID?) -> MutationBatch? {
    var low = head
    if let id {
      var high = order.count
      while low < high {
        let middle = (low + high) / 2
        if order[middle] > id { high = middle } else { low = middle + 1 }
      }
    }
    return order[low...].lazy.compactMap { batches[$0] }.first
  }
}
