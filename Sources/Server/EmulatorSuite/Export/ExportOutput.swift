// Writes the log file of an export, which contains one record per document.
//
// Invariant: memory holds one document's record and a bounded part of the log.

import BlockLog
import FirestoreEndpoints
import FirestoreEngine
import FirestoreModel

/// A log that is being written. All functions block.
struct ExportOutput: Sendable {
  /// Log bytes that are buffered before a write.
  private static let batchBytes = 1 << 20

  let file: Int32
  let path: String
  private(set) var log = BlockLogWriter()
  /// The number of documents so far.
  private(set) var count = 0
  private var buffer: [UInt8] = []

  init(file: Int32, path: String) {
    self.file = file
    self.path = path
  }

  /// Appends a document.
  /// - Throws: FAILED_PRECONDITION for a document whose record would be too large, ``ExportFiles/Failure``.
  mutating func add(_ document: StoredDocument) throws {
    let record = try ExportEntity.record(of: document.name, try document.fields())
    var open = log.begin(record.count)
    try record.forEachChunk { piece in
      log.append(piece, to: &open, &buffer)
      if buffer.count >= Self.batchBytes { try flush() }
    }
    count += 1
  }

  /// Writes the buffer.
  mutating func flush() throws(ExportFiles.Failure) {
    try ExportFiles.append(buffer, to: file, path)
    buffer.removeAll(keepingCapacity: true)
  }
}
