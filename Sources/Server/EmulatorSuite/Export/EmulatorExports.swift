// Exports and imports Firestore databases in the emulator suite's format. The format is that of Cloud Datastore: an export
// consists of kinds (groups of documents), and each kind has output files with the documents. This server writes one kind
// with one output file.
//
// Invariants
//   1. An export shows one consistent state.
//   2. An import writes nothing unless all of its records can be read.
//   3. Memory is bounded, independent of the size of the database.

import Access
import BlockLog
import FirestoreEngine
import FirestoreModel
import NIOConcurrencyHelpers

/// Exports and imports the Firestore databases of one engine.
struct EmulatorExports: Sendable {
  /// Bytes of records that are read at a time.
  private static let batchBytes = 4 << 20
  /// Maximum number of documents in one commit of an import.
  private static let batchDocuments = 500

  let engine: FirestoreEngine
  /// The approximate maximum size of one commit of an import, in bytes, unless a single document is larger. It is far
  /// below the limit of commits, since all documents of a commit are in memory.
  var maximumCommitBytes = 16 << 20

  /// Writes a database to `directory/name/`, and replaces existing files.
  /// - Throws: FAILED_PRECONDITION for a missing directory, INTERNAL if a file cannot be written.
  func export(
    _ database: DatabaseName, to directory: String, as name: String
  ) async throws(FirestoreError) {
    guard await (try? ExportFiles.blocking(.internalError) { ExportFiles.isDirectory(directory) }) == true
    else {
      throw .failedPrecondition("export_directory must be a directory")
    }
    guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(0x2F), !name.utf8.contains(0) else {
      throw .invalidArgument("export_name must be the name of a directory, without slashes.")
    }
    let root = "\(directory)/\(name)"
    let kind = "\(root)/\(ExportMetadata.kindDirectory)"
    let begin = Self.now
    let output = "\(kind)/\(ExportMetadata.outputFile)"
    let file = try await ExportFiles.blocking(.internalError) {
      try ExportFiles.makeDirectories(kind)
      return try ExportFiles.create(output)
    }
    let state = NIOLockedValueBox(ExportOutput(file: file, path: output))
    let failure = await write(database, to: state)
    // The descriptor is closed after success and after an error.
    try await ExportFiles.blocking(.internalError) {
      if failure == nil { try ExportFiles.finish(file, output) } else { ExportFiles.closeUnfinished(file) }
    }
    if let failure { throw failure }
    let (log, count) = state.withLockedValue { ($0.log, $0.count) }
    let end = Self.now
    try await ExportFiles.blocking(.internalError) {
      if count > 0 {
        let metadata = ExportMetadata.kind(name: name, begin: begin, end: end)
        try ExportFiles.write(metadata, to: "\(kind)/\(ExportMetadata.kindFile)")
      } else {
        try ExportFiles.remove(output)
        ExportFiles.removeEmpty([kind, "\(root)/all_namespaces"])
      }
      try ExportFiles.write(
        ExportMetadata.overall(entities: count, bytes: log.count),
        to: "\(root)/\(name)\(ExportMetadata.overallSuffix)")
      try ExportFiles.syncDirectories(root)
    }
  }

  /// Whether a database contains no document.
  func isEmpty(_ database: DatabaseName) async throws(FirestoreError) -> Bool {
    let isEmpty = NIOLockedValueBox(true)
    do {
      try await engine.runQuery(try Self.allDocuments(in: database, limit: 1), as: .administrator) { page in
        if !page.documents.isEmpty { isEmpty.withLockedValue { $0 = false } }
      }
    } catch {
      throw error as? FirestoreError ?? .internalError("failed to write export")
    }
    return isEmpty.withLockedValue { $0 }
  }

  private static func allDocuments(in database: DatabaseName, limit: Int? = nil) throws -> Query {
    Query(
      parent: try ParentName(parsing: "\(database)/documents"),
      StructuredQuery(from: [.init("", allDescendants: true)], limit: limit))
  }

  /// Appends all documents of a database to a file. Returns the error, if any.
  private func write(
    _ database: DatabaseName, to output: NIOLockedValueBox<ExportOutput>
  ) async -> FirestoreError? {
    do {
      try await engine.runQuery(try Self.allDocuments(in: database), as: .administrator) { page in
        let documents = page.documents
        // A page limits only the stored size of its documents. Their records may be far larger, so `output` writes them
        // in chunks.
        try await ExportFiles.blocking(.internalError) {
          try output.withLockedValue { output in
            for document in documents { try output.add(document) }
            try output.flush()
          }
        }
      }
      return nil
    } catch {
      return error as? FirestoreError ?? .internalError("failed to write export")
    }
  }

  /// Imports an export into a database. Sets the export's documents, and keeps all other documents.
  /// - Parameter path: the export's `.overall_export_metadata`. It may be a symbolic link.
  /// - Throws: INVALID_ARGUMENT for an export that cannot be read.
  func importDatabase(_ path: String, into database: DatabaseName) async throws(FirestoreError) {
    let found = try await ExportFiles.blocking(.invalidArgument) { () throws -> (String, ExportSource) in
      guard !path.isEmpty, !path.utf8.contains(0), let real = try? ExportFiles.realPath(path) else {
        throw Self.noMetadata
      }
      return (real, try ExportSource(ExportSource.directory(of: real)))
    }
    try await importDatabase(found.0, in: found.1, into: database)
  }

  /// Imports a file whose path has no symbolic links. See ``importDatabase(_:into:)``.
  func importDatabase(
    _ path: String, in source: ExportSource, into database: DatabaseName
  ) async throws(FirestoreError) {
    let outputs = try await ExportFiles.blocking(.invalidArgument) { try Self.outputs(of: path, in: source) }
    // All records are read before the first write (invariant 2).
    for output in outputs { try await read(output, database) { _ throws(FirestoreError) in } }
    for output in outputs {
      try await read(output, database) { writes throws(FirestoreError) in
        var rest = writes[...]
        while !rest.isEmpty {
          let batch = nextBatch(of: rest)
          try await commit(batch, in: database, from: output)
          rest = rest.dropFirst(batch.count)
        }
      }
    }
  }

  /// Returns as many of the first writes as fit into one commit, but at least one.
  private func nextBatch(of writes: ArraySlice<Write>) -> ArraySlice<Write> {
    var bytes = 0
    let batch = writes.prefix(Self.batchDocuments).prefix { write in
      bytes += write.estimatedCommitBytes
      return bytes <= maximumCommitBytes
    }
    return batch.isEmpty ? writes.prefix(1) : batch
  }

  /// Commits writes. If they exceed a limit together, commits each half separately. The size of a commit is not known
  /// before, because it depends on indexes and replaced documents, which only the database knows. A single rejected write
  /// is an error.
  private func commit(
    _ writes: ArraySlice<Write>, in database: DatabaseName, from path: String
  ) async throws(FirestoreError) {
    do throws(FirestoreError) {
      _ = try await engine.commit(in: database, Array(writes), as: .administrator)
    } catch {
      guard error.code == .invalidArgument, let first = writes.first else { throw error.at(path) }
      guard writes.count > 1 else { throw error.at("\(path), document \(first.document.path)") }
      let half = writes.startIndex + writes.count / 2
      try await commit(writes[..<half], in: database, from: path)
      try await commit(writes[half...], in: database, from: path)
    }
  }

  private static let noMetadata = FirestoreError.invalidArgument(
    "Failed to parse overall export metadata file")

  /// Returns the paths of the files with an export's documents, each one once.
  private static func outputs(of path: String, in source: ExportSource) throws -> [String] {
    guard let overall = try? ExportFiles.read(path, atMost: ExportMetadata.maximumBytes) else {
      throw noMetadata
    }
    let directory = ExportSource.directory(of: path)
    var kinds: [String] = []
    var outputs: [String] = []
    var visitedPaths: Set<String> = []
    for name in try ExportMetadata.kinds(overall: overall) {
      // The emulator suite on Windows writes backslashes in paths.
      let isFromWindows = !ExportFiles.exists("\(directory)/\(name)")
      let kind = try source.path(isFromWindows ? name.replacing("\\", with: "/") : name, in: directory)
      if visitedPaths.insert(kind).inserted { kinds.append(kind) }
    }
    for kind in kinds {
      let bytes = try ExportFiles.read(kind, atMost: ExportMetadata.maximumBytes)
      for name in try ExportMetadata.outputs(kind: bytes) {
        let output: String
        do { output = try source.path(name, in: ExportSource.directory(of: kind)) } catch let error
          as ExportFiles.Failure
        { throw FirestoreError.invalidArgument("Failed parse entity file:\(error.path)") }
        if visitedPaths.insert(output).inserted { outputs.append(output) }
      }
    }
    return outputs
  }

  /// Reads the documents of a file as writes that set them. Documents of other databases are skipped.
  private func read(
    _ path: String, _ database: DatabaseName,
    _ body: ([Write]) async throws(FirestoreError) -> Void
  ) async throws(FirestoreError) {
    var reader = BlockLogReader()
    while true {
      // If the server is stopped during its start, it does not finish the import.
      if Task.isCancelled { throw FirestoreError(.cancelled, "The import was cancelled.") }
      let current = reader
      let batch = try await ExportFiles.blocking(.invalidArgument) {
        var reader = current
        do {
          let records = try ExportFiles.records(of: path, &reader, bytes: Self.batchBytes)
          return (try writes(records, of: path, database), reader, records.isEmpty)
        } catch is ExportFiles.Failure {
          throw FirestoreError.invalidArgument("Failed parse entity file:\(path)")
        }
      }
      if batch.2 { return }
      reader = batch.1
      try await body(batch.0)
    }
  }

  private func writes(
    _ records: [ExportRecord], of path: String, _ database: DatabaseName
  ) throws(FirestoreError) -> [Write] {
    var writes: [Write] = []
    for record in records {
      do throws(FirestoreError) {
        let entity = try ExportEntity(record.bytes, into: database.project)
        guard entity.database.utf8.elementsEqual(database.database.utf8) else { continue }
        // Parsing the name also checks its syntax.
        let name = try DocumentName(
          parsing: "\(database)/documents/\(entity.path.segments.joined(separator: "/"))")
        let write = Write(.update(name, fields: entity.fields))
        do throws(FirestoreError) {
          try write.validate(in: database, limits: engine.limits.data)
        } catch {
          throw error.at("document \(name.path)")
        }
        writes.append(write)
      } catch {
        throw error.at("\(path), the record at byte \(record.offset)")
      }
    }
    return writes
  }

  private static var now: Int64 { ExportFiles.microseconds }
}

extension FirestoreError {
  /// The same error with its position in the export.
  fileprivate func at(_ place: String) -> FirestoreError {
    var error = self
    error.message += " (\(place))"
    return error
  }
}

extension Write {
  /// The estimated bytes of a commit for a document: its row, twice that for the log, and automatic index entries.
  fileprivate var estimatedCommitBytes: Int {
    guard case .update(let name, let fields) = operation else { return 0 }
    let overheadBytes = DocumentSize.of(path: name.path) + 32
    return 3 * DocumentSize.of(name, fields) + fields.entryBytes(overheadBytes: overheadBytes)
  }
}

extension MapValue {
  /// The estimated bytes of the fields' index entries: one for each field, for each field of nested maps, and for
  /// each element of an array.
  /// - Parameter overheadBytes: the bytes of an entry in addition to the field's name and value.
  fileprivate func entryBytes(overheadBytes: Int) -> Int {
    var bytes = 0
    for field in entries {
      let overheadBytes = overheadBytes + field.key.utf8.count + 1
      func entry(_ value: Value) -> Int {
        overheadBytes + Swift.min(DocumentSize.of(value: value), Limits.indexedValueBytes)
      }
      bytes += entry(field.value)
      switch field.value {
      case .map(let map): bytes += map.entryBytes(overheadBytes: overheadBytes)
      case .array(let elements): for element in elements { bytes += entry(element) }
      default: break
      }
    }
    return bytes
  }
}
