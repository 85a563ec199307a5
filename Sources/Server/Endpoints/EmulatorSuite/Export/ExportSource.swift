// The directory of an export that is read. What its files name may be anything: only what lies in it is opened.

import FirestoreModel

/// A directory to read an export from.
struct ExportSource: Sendable {
  /// Its path, without links.
  let root: String

  /// Names a directory that is there.
  /// - Throws: INVALID_ARGUMENT if there is none.
  init(_ path: String) throws {
    guard !path.utf8.contains(0), ExportFiles.isDirectory(path) else {
      throw FirestoreError.invalidArgument("Directory \"\(path)\" does not exist.")
    }
    root = try ExportFiles.realPath(path)
  }

  /// The path of something that the export names, without links.
  /// - Parameters:
  ///   - name: as the export has it.
  ///   - directory: the directory that it is relative to.
  /// - Throws: INVALID_ARGUMENT for what lies outside, be it by a link; ``ExportFiles/Failure`` for what is not there.
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

  /// The directory that a path without links lies in.
  static func directory(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: 0x2F) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
