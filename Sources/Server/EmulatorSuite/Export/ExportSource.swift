// Resolves the paths in an export that is imported. The export may contain any path: only files inside its directory
// are opened.

import FirestoreEndpoints
import FirestoreModel

/// The directory of an export that is imported.
struct ExportSource: Sendable {
  /// The directory's path, with symbolic links resolved.
  let root: String

  /// Opens an existing directory.
  /// - Throws: INVALID_ARGUMENT if it does not exist.
  init(_ path: String) throws {
    guard !path.utf8.contains(0), ExportFiles.isDirectory(path) else {
      throw FirestoreError.invalidArgument("Directory \"\(path)\" does not exist.")
    }
    root = try ExportFiles.realPath(path)
  }

  /// Returns a path in the export, with symbolic links resolved.
  /// - Parameters:
  ///   - name: the path as the export contains it.
  ///   - directory: the directory to which it is relative.
  /// - Throws: INVALID_ARGUMENT for a path that leads outside, even by a link; ``ExportFiles/Failure`` for a missing file.
  func path(_ name: String, in directory: String) throws -> String {
    let outside = FirestoreError.invalidArgument(
      "The export names a file outside of its directory: \(name.prefix(200))")
    guard !name.hasPrefix("/"), !name.pathSegments.contains(".."), !name.utf8.contains(0) else {
      throw outside
    }
    let real = try ExportFiles.realPath("\(directory)/\(name)")
    guard real == root || real.hasPrefix(root == "/" ? root : root + "/") else { throw outside }
    return real
  }

  /// The directory that contains the file at a path. The path must have no symbolic links.
  static func directory(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: 0x2F) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
