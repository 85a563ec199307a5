// The rows of one commit in a batch: its changes, what they replaced as undo rows, and its log record.

/// Writes commits into batches.
enum CommitRows {
  static func write(
    _ changes: [SequencedState.Change], _ record: LogRecord?, at version: Version, keepsHistory: Bool,
    _ layout: StorageKeyLayout, into batch: any EngineBatch
  ) {
    version.withBytes { head in
      for change in changes {
        change.key.withUnsafeBytes { key in
          layout.withRow(key) { physical in
            if let value = change.value {
              value.withUnsafeBytes { batch.put(physical, head, $0) }
            } else {
              batch.delete(physical)
            }
          }
          if keepsHistory, let before = change.before {
            layout.withUndo(key, until: version) { physical in
              before.writtenAt.withBytes { writtenAt in
                before.value.withUnsafeBytes { batch.put(physical, writtenAt, $0) }
              }
            }
          }
        }
      }
    }
    if let record {
      layout.withLog(version) { physical in
        record.payload.withUnsafeBytes {
          batch.put(physical, UnsafeRawBufferPointer(start: nil, count: 0), $0)
        }
      }
    }
  }
}
