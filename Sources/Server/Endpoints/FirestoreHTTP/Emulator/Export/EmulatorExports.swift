// Exports of databases into the emulator suite's directories, and imports of them.
//
// Invariants: an export shows one state; an import writes nothing unless every record of it can be read; what either
// holds in memory is bounded, however large the database.

import FirestoreEngine
import FirestoreModel
import NIOConcurrencyHelpers

struct EmulatorExports: Sendable {
  /// Bytes of records that are held at once.
  private static let batchBytes = 4 << 20
  /// Documents that one commit of an import writes at most.
  private static let batchDocuments = 500

  let engine: FirestoreEngine

  /// Writes a database to `directory/name/`, in place of what is there.
  /// - Throws: FAILED_PRECONDITION if there is no such directory, INTERNAL if a file cannot be written.
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
    let state = NIOLockedValueBox((log: LevelLogWriter(), count: 0))
    let failure = await write(database, to: file, output, state)
    // The descriptor is closed whatever came before.
    try await ExportFiles.blocking(.internalError) {
      if failure == nil { try ExportFiles.finish(file, output) } else { ExportFiles.drop(file) }
    }
    if let failure { throw failure }
    let (log, count) = state.withLockedValue { $0 }
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

  /// Appends all documents of a database to a file; what went wrong, if anything did.
  private func write(
    _ database: DatabaseName, to file: Int32, _ path: String,
    _ state: NIOLockedValueBox<(log: LevelLogWriter, count: Int)>
  ) async -> FirestoreError? {
    var everything = StructuredQuery()
    everything.from = [.init("", allDescendants: true)]
    do {
      let query = Query(parent: try ParentName(parsing: "\(database)/documents"), everything)
      try await engine.runQuery(query, as: .administrator) { page in
        var bytes: [UInt8] = []
        for document in page.documents {
          let entity = ExportEntity.encode(document.name, try document.fields())
          bytes += state.withLockedValue { state in
            state.count += 1
            return state.log.frame(entity)
          }
        }
        let chunk = bytes
        try await ExportFiles.blocking(.internalError) { try ExportFiles.append(chunk, to: file, path) }
      }
      return nil
    } catch {
      return error as? FirestoreError ?? .internalError("failed to write export")
    }
  }

  /// Reads an export into a database: its documents are set, all others stay.
  /// - Parameter path: the export's `.overall_export_metadata`, which may be a link to it.
  /// - Throws: INVALID_ARGUMENT for an export that cannot be read.
  func load(_ path: String, into database: DatabaseName) async throws(FirestoreError) {
    let found = try await ExportFiles.blocking(.invalidArgument) { () throws -> (String, ExportSource) in
      guard !path.isEmpty, !path.utf8.contains(0), let real = try? ExportFiles.realPath(path) else {
        throw Self.noMetadata
      }
      return (real, try ExportSource(ExportSource.directory(of: real)))
    }
    try await load(found.0, in: found.1, into: database)
  }

  /// As ``load(_:into:)``, of a file whose path has no links.
  func load(
    _ path: String, in source: ExportSource, into database: DatabaseName
  ) async throws(FirestoreError) {
    let outputs = try await ExportFiles.blocking(.invalidArgument) { try Self.outputs(of: path, in: source) }
    for output in outputs { try await read(output, database) { _ throws(FirestoreError) in } }
    for output in outputs {
      try await read(output, database) { writes throws(FirestoreError) in
        _ = try await engine.commit(in: database, writes, as: .administrator)
      }
    }
  }

  private static let noMetadata = FirestoreError.invalidArgument(
    "Failed to parse overall export metadata file")

  /// The paths of the files with the documents of an export, each once however often it is named.
  private static func outputs(of path: String, in source: ExportSource) throws -> [String] {
    guard let overall = try? ExportFiles.read(path, atMost: ExportMetadata.maximumBytes) else {
      throw noMetadata
    }
    let directory = ExportSource.directory(of: path)
    var kinds: [String] = []
    var outputs: [String] = []
    var known: Set<String> = []
    for name in try ExportMetadata.kinds(overall: overall) {
      // The suite's exports from Windows name the file as that system does.
      let isFromWindows = !ExportFiles.exists("\(directory)/\(name)")
      let kind = try source.path(isFromWindows ? name.replacing("\\", with: "/") : name, in: directory)
      if known.insert(kind).inserted { kinds.append(kind) }
    }
    for kind in kinds {
      let bytes = try ExportFiles.read(kind, atMost: ExportMetadata.maximumBytes)
      for name in try ExportMetadata.outputs(kind: bytes) {
        let output: String
        do { output = try source.path(name, in: ExportSource.directory(of: kind)) } catch let error
          as ExportFiles.Failure
        { throw FirestoreError.invalidArgument("Failed parse entity file:\(error.path)") }
        if known.insert(output).inserted { outputs.append(output) }
      }
    }
    return outputs
  }

  /// Goes over the documents of a file, as the writes that set them; those of other databases are left out.
  private func read(
    _ path: String, _ database: DatabaseName,
    _ body: ([Write]) async throws(FirestoreError) -> Void
  ) async throws(FirestoreError) {
    var reader = LevelLogReader()
    while true {
      let current = reader
      let batch = try await ExportFiles.blocking(.invalidArgument) {
        var reader = current
        do {
          let records = try ExportFiles.records(of: path, &reader, bytes: Self.batchBytes)
          return (try writes(records, database), reader, records.isEmpty)
        } catch is ExportFiles.Failure {
          throw FirestoreError.invalidArgument("Failed parse entity file:\(path)")
        }
      }
      if batch.2 { return }
      reader = batch.1
      var rest = batch.0[...]
      while !rest.isEmpty {
        try await body(Array(rest.prefix(Self.batchDocuments)))
        rest = rest.dropFirst(Self.batchDocuments)
      }
    }
  }

  private func writes(
    _ records: [[UInt8]], _ database: DatabaseName
  ) throws(FirestoreError) -> [Write] {
    var writes: [Write] = []
    for record in records {
      let entity = try ExportEntity(record, into: database.project)
      guard entity.database.utf8.elementsEqual(database.database.utf8) else { continue }
      // Parsed, so that the name keeps the rules of names.
      let name = try DocumentName(
        parsing: "\(database)/documents/\(entity.path.segments.joined(separator: "/"))")
      let write = Write(.update(name, fields: entity.fields))
      try write.validate(in: database, limits: engine.limits.data)
      writes.append(write)
    }
    return writes
  }

  private static var now: Int64 { ExportFiles.microseconds }
}
