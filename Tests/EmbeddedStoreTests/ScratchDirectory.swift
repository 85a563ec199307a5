// A directory for one test.

import Foundation

/// The directory of one test, removed with this object.
final class ScratchDirectory: Sendable {
  let path: String

  init() throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    path = directory.path
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
