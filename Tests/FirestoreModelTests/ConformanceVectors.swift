// Test vectors from the folder that HEARTH_CONFORMANCE names: read as they are there, none by its name.

import Foundation
import Testing

/// A set of vectors, by folder.
enum ConformanceVectors {
  private static let root = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"]

  /// Whether there are vectors to run: tests without any are skipped, and say so.
  static var areGiven: Bool { root != nil }

  /// The JSON files of a folder in order of their names. A folder that should be there and is not is a failure.
  static func files(in folder: String) throws -> [URL] {
    let root = try #require(root)
    let directory = URL(fileURLWithPath: root).appendingPathComponent(folder)
    let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }
    try #require(!files.isEmpty, "\(directory.path) holds no vectors")
    return files
  }

  /// A file's JSON object.
  static func object(at file: URL) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
  }
}
