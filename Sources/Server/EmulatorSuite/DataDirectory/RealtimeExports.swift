// Exports and imports Realtime Databases: one JSON file per namespace, with priorities, written and read in chunks.

import Access
import FirestoreModel
import Logging
import RealtimeEndpoints
import RealtimeEngine
import RealtimeModel

/// Exports and imports the Realtime Databases of an emulator.
struct RealtimeExports: Sendable {
  private static let chunkBytes = 256 << 10

  /// Nil if the Realtime Database is not served.
  let engine: RealtimeEngine?
  let log: Logger

  /// Writes every namespace with data to `directory/<namespace>.json`.
  func export(to directory: String) async throws(FirestoreError) {
    guard let engine else { return }
    do {
      for namespace in try await engine.namespaces() {
        let database = try await engine.database(namespace)
        if let value = try await database.getIfSmall(.root, as: .administrator), value.isEmpty { continue }
        let export = try await database.export(.root, isExport: true, as: .administrator)
        let path = "\(directory)/\(namespace).json"
        let file = try await ExportFiles.blocking(.internalError) { try ExportFiles.create(path) }
        var failure: (any Error)?
        do {
          while let (chunk, _) = try await export.next() {
            try await ExportFiles.blocking(.internalError) { try ExportFiles.append(chunk, to: file, path) }
          }
        } catch {
          failure = error
        }
        // The descriptor is closed after success and after an error.
        let isComplete = failure == nil
        try await ExportFiles.blocking(.internalError) {
          if isComplete { try ExportFiles.finish(file, path) } else { ExportFiles.closeUnfinished(file) }
        }
        if let failure { throw failure }
      }
    } catch {
      throw Self.error(error, "The Realtime Databases cannot be exported")
    }
  }

  /// Replaces the value of each namespace by the contents of `directory/<namespace>.json`. Skips an export's manifest
  /// in that directory.
  func importDatabases(_ directory: String, in source: ExportSource) async throws(FirestoreError) {
    guard let engine else { return }
    let files = try await ExportFiles.blocking(.invalidArgument) {
      let real = try source.path(directory, in: source.root)
      guard ExportFiles.isDirectory(real) else {
        throw FirestoreError.invalidArgument("\(real) is no directory.")
      }
      return try ExportFiles.names(in: real).filter { name in
        name.hasSuffix(".json") && (real != source.root || name != ExportManifest.fileName)
      }.map { (namespace: String($0.dropLast(5)), path: try source.path($0, in: real)) }
    }
    for (namespace, path) in files {
      do {
        let database = try await engine.database(namespace)
        let limits = RealtimeEndpointLimits()
        let writing = try await database.beginImport(
          at: .root, maximumBytes: limits.importBytes, as: .administrator)
        var offset = 0
        while true {
          let position = offset
          let chunk = try await ExportFiles.blocking(.invalidArgument) {
            try ExportFiles.read(path, from: position, atMost: Self.chunkBytes)
          }
          if chunk.isEmpty { break }
          offset += chunk.count
          try await writing.add(chunk)
        }
        try await writing.finish()
        log.info("a Realtime Database was imported", metadata: ["file": "\(path)", "bytes": "\(offset)"])
      } catch {
        throw Self.error(error, "\(path) cannot be imported")
      }
    }
  }

  private static func error(_ error: any Error, _ problem: String) -> FirestoreError {
    if let error = error as? FirestoreError { return error }
    if let error = error as? RealtimeError { return .invalidArgument("\(problem): \(error)") }
    return .internalError("\(problem): \(error)")
  }
}
