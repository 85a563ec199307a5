// Reads a configuration file, and says in words why it cannot be read.

import Foundation

/// The files that a server is configured with.
public enum ConfigurationFile {
  /// The bytes of a file; nil if there is none.
  /// - Throws: ``HearthError`` with the reason alone, for whoever knows what the file is for.
  public static func read(_ path: String) throws(HearthError) -> [UInt8]? {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else { return nil }
    guard !isDirectory.boolValue else {
      throw HearthError("it is a directory, and only a file can be read.")
    }
    do {
      return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    } catch {
      throw HearthError(error.localizedDescription)
    }
  }
}
