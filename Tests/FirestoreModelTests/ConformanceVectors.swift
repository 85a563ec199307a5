// Reads conformance vectors, which are published test data, from the folder that the environment variable
// HEARTH_CONFORMANCE names.

import Foundation
import Testing

/// The conformance vectors. Each kind of vector has a folder.
enum ConformanceVectors {
  private static let root = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"]

  /// Whether the environment variable is set. Otherwise the tests with vectors are skipped.
  static var areAvailable: Bool { root != nil }

  /// The JSON files of a folder, sorted by name. Throws if the folder is missing or has no JSON files.
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
