// Databases that take long to fill, filled once for all measurements and rounds.

import Foundation
import NIOConcurrencyHelpers

/// Filled databases, each in a directory of its own that goes at the end.
final class FilledDatabases: Sendable {
  private let directories = NIOLockedValueBox<[String: String]>([:])

  /// The directory of a database, filled if there is none of that name yet.
  func directory(
    _ name: String, _ setting: Setting, fill: (_ directory: String) async throws -> Void
  ) async throws -> String {
    if let known = directories.withLockedValue({ $0[name] }) { return known }
    let path = try setting.temporaryDirectory()
    do {
      try await fill(path)
    } catch {
      try? FileManager.default.removeItem(atPath: path)
      throw error
    }
    keep(path, as: name)
    return path
  }

  /// Keeps a directory that is filled already, unless there is one of that name.
  func keep(_ path: String, as name: String) {
    let isKept = directories.withLockedValue { directories in
      guard directories[name] == nil else { return false }
      directories[name] = path
      return true
    }
    if !isKept { try? FileManager.default.removeItem(atPath: path) }
  }

  func removeAll() {
    for path in directories.withLockedValue({ $0.values }) {
      try? FileManager.default.removeItem(atPath: path)
    }
  }
}
