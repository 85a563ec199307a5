// Large databases, loaded once for all measurements and rounds, and optionally for later runs.

import Foundation
import NIOConcurrencyHelpers

/// Loaded databases, each in its own directory, which is removed at the end unless it is kept.
final class LoadedDatabases: Sendable {
  private let directories = NIOLockedValueBox<[String: String]>([:])
  /// The directory of databases for later runs; nil if they are not kept.
  private let keptDirectory: String?

  /// Makes the cache of databases.
  /// - Parameter kept: a directory of databases from earlier runs, to which this run adds its own.
  init(keptIn kept: String? = nil) { keptDirectory = kept }

  /// The directory of a database, loaded if no database of that name exists yet.
  func directory(
    _ name: String, _ setting: Setting, fill: (_ directory: String) async throws -> Void
  ) async throws -> String {
    if let loaded = directories.withLockedValue({ $0[name] }) { return loaded }
    if let earlier = keptPath(of: name), FileManager.default.fileExists(atPath: earlier) {
      directories.withLockedValue { $0[name] = earlier }
      return earlier
    }
    let path = try setting.temporaryDirectory()
    do {
      try await fill(path)
    } catch {
      try? FileManager.default.removeItem(atPath: path)
      throw error
    }
    return try keep(path, as: name)
  }

  /// The path of a kept database.
  private func keptPath(of name: String) -> String? { keptDirectory.map { $0 + "/" + name } }

  /// Keeps a loaded directory, unless one of that name exists.
  /// - Returns: the kept directory, or the current one.
  @discardableResult
  func keep(_ path: String, as name: String) throws -> String {
    if let loaded = directories.withLockedValue({ $0[name] }) {
      try? FileManager.default.removeItem(atPath: path)
      return loaded
    }
    var directory = path
    if let keptDirectory, let later = keptPath(of: name) {
      try FileManager.default.createDirectory(atPath: keptDirectory, withIntermediateDirectories: true)
      if FileManager.default.fileExists(atPath: later) { try FileManager.default.removeItem(atPath: later) }
      try FileManager.default.moveItem(atPath: path, toPath: later)
      directory = later
    }
    directories.withLockedValue { $0[name] = directory }
    return directory
  }

  func removeAll() {
    guard keptDirectory == nil else { return }
    for path in directories.withLockedValue({ $0.values }) {
      try? FileManager.default.removeItem(atPath: path)
    }
  }
}
