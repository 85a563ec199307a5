// Reads a configuration file, and says in words why it cannot be read.

import Foundation

/// The files that a server is configured with.
public enum ConfigurationFile {
  /// The bytes of a file; nil if there is none.
  /// - Throws: ``HearthError`` with the reason alone, for whoever knows what the file is for.
  public static func read(_ path: String) throws(HearthError) -> [UInt8]? {
    guard let file = fopen(path, "rb") else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw failure
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = fread(&piece, 1, piece.count, file)
      bytes += piece[..<count]
      guard ferror(file) == 0 else { throw failure }
      if count < piece.count { return bytes }
    }
  }

  /// The system's reason for what failed last.
  private static var failure: HearthError {
    errno == EISDIR
      ? HearthError("it is a directory, and only a file can be read.")
      : HearthError(String(cString: strerror(errno)))
  }
}
