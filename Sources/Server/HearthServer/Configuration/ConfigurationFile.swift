// Reads a configuration file. If that fails, the error contains the system's reason.

import Foundation

/// Reads the configuration files of a server.
public enum ConfigurationFile {
  /// The bytes of a file; nil if it does not exist.
  /// - Throws: ``HearthError`` that contains only the reason. The caller adds the file's name and purpose.
  public static func read(_ path: String) throws(HearthError) -> [UInt8]? {
    guard let file = fopen(path, "rb") else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw failure
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = fread(&chunk, 1, chunk.count, file)
      bytes += chunk[..<count]
      guard ferror(file) == 0 else { throw failure }
      if count < chunk.count { return bytes }
    }
  }

  /// The error with the system's reason for the last failed call (`errno`).
  private static var failure: HearthError {
    errno == EISDIR
      ? HearthError("it is a directory, and only a file can be read.")
      : HearthError(String(cString: strerror(errno)))
  }
}
