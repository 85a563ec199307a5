// Databases that take long to fill, filled once for all measurements and rounds, and for later runs where they are kept.

import Foundation
import NIOConcurrencyHelpers

/// Filled databases, each in a directory of its own that goes at the end, unless they are kept.
final class FilledDatabases: Sendable {
  private let directories = NIOLockedValueBox<[String: String]>([:])
  /// Where databases are kept for later runs; nil if they are not.
  private let kept: String?

  /// - Parameter kept: a directory of databases that other runs filled, which gets those that this one fills.
  init(keptIn kept: String? = nil) { self.kept = kept }

  /// The directory of a database, filled if there is none of that name yet.
  func directory(
    _ name: String, _ setting: Setting, fill: (_ directory: String) async throws -> Void
  ) async throws -> String {
    if let known = directories.withLockedValue({ $0[name] }) { return known }
    if let earlier = place(of: name), FileManager.default.fileExists(atPath: earlier) {
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

  /// Where a database is kept for later runs.
  private func place(of name: String) -> String? { kept.map { $0 + "/" + name } }

  /// Keeps a directory that is filled already, unless there is one of that name; returns that, or where it is now.
  @discardableResult
  func keep(_ path: String, as name: String) throws -> String {
    if let known = directories.withLockedValue({ $0[name] }) {
      try? FileManager.default.removeItem(atPath: path)
      return known
    }
    var place = path
    if let kept, let later = self.place(of: name) {
      try FileManager.default.createDirectory(atPath: kept, withIntermediateDirectories: true)
      if FileManager.default.fileExists(atPath: later) { try FileManager.default.removeItem(atPath: later) }
      try FileManager.default.moveItem(atPath: path, toPath: later)
      place = later
    }
    directories.withLockedValue { $0[name] = place }
    return place
  }

  func removeAll() {
    guard kept == nil else { return }
    for path in directories.withLockedValue({ $0.values }) {
      try? FileManager.default.removeItem(atPath: path)
    }
  }
}
