// The file with an export's documents while it is written.
//
// Invariant: of a document's record there is one copy in memory; what of the log waits to be written is bounded.

import BlockLog
import FirestoreEngine
import FirestoreModel

/// A log on its way to a file. All of it blocks.
struct ExportOutput: Sendable {
  /// Bytes of the log from which on they are written.
  private static let batchBytes = 1 << 20

  let file: Int32
  let path: String
  private(set) var log = BlockLogWriter()
  /// The documents so far.
  private(set) var count = 0
  private var waiting: [UInt8] = []

  init(file: Int32, path: String) {
    self.file = file
    self.path = path
  }

  /// Appends a document.
  /// - Throws: FAILED_PRECONDITION for one that has no record, ``ExportFiles/Failure``.
  mutating func add(_ document: StoredDocument) throws {
    let record = try ExportEntity.record(of: document.name, try document.fields())
    var open = log.begin(record.count)
    try record.forEachChunk { piece in
      log.append(piece, to: &open, &waiting)
      if waiting.count >= Self.batchBytes { try flush() }
    }
    count += 1
  }

  /// Writes what waits.
  mutating func flush() throws(ExportFiles.Failure) {
    try ExportFiles.append(waiting, to: file, path)
    waiting.removeAll(keepingCapacity: true)
  }
}
