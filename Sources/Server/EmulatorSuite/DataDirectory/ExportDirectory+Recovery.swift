// Recovers a directory after an interrupted export. An export uses these folders:
//
//     .hearth-export-<32 hexadecimal digits>.staged   being written: useless until it is complete
//     .hearth-export-<32 hexadecimal digits>.old      the previous contents, before their removal
//     .hearth-export-<32 hexadecimal digits>.new      complete, but not moved into place yet: the valid export
//
// Invariants
//   1. If the directory itself contains a manifest, its export is complete, and the folders are useless.
//   2. Recovery removes only folders with these names, and never overwrites an existing file.

import FirestoreModel

extension ExportDirectory {
  /// A folder that an export creates in its directory.
  enum Folder: String {
    case staged
    case old
    case new

    private static let prefix = ".hearth-export-"
    private static let digits = 32

    /// A random id that distinguishes the folders of two exports.
    static var newID: String {
      (0..<digits).map { _ in String(Int.random(in: 0..<16), radix: 16) }.joined()
    }

    /// Returns the type of a folder by its name; nil for any other name.
    init?(of name: String) {
      guard name.hasPrefix(Self.prefix) else { return nil }
      let parts = name.dropFirst(Self.prefix.count).split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0].utf8.count == Self.digits,
        parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
      else { return nil }
      self.init(rawValue: String(parts[1]))
    }

    func path(_ id: String, in directory: String) -> String { "\(directory)/\(Self.prefix)\(id).\(rawValue)" }
  }

  /// Recovers a directory to which no process exports. A complete export in a folder is moved into place if the
  /// directory is empty, otherwise removed.
  static func recover(_ directory: String) throws {
    let names = try ExportFiles.names(in: directory)
    let folders = try folders(of: directory)
    if !names.contains(ExportManifest.fileName) {
      for kind in [Folder.new, .old] {
        let complete = folders.first { folder in
          folder.kind == kind && ExportFiles.exists("\(folder.path)/\(ExportManifest.fileName)")
        }
        guard let complete else { continue }
        do { try moveExport(from: complete.path, to: directory) } catch {
          throw FirestoreError.failedPrecondition(
            "An export to \(directory) was interrupted, and its folder \(complete.path) cannot be moved into place: "
              + error.message)
        }
        break
      }
    }
    for folder in folders { try ExportFiles.remove(folder.path) }
  }

  /// Recovers a directory before it is read. Changes nothing if there are no such folders, or if another process is
  /// exporting. In the second case the directory can be read if it has a manifest; otherwise it throws
  /// FAILED_PRECONDITION.
  static func recoverForReading(_ directory: String) throws {
    guard try !folders(of: directory).isEmpty else { return }
    let isComplete = ExportFiles.exists("\(directory)/\(ExportManifest.fileName)")
    guard let lock = try DirectoryLock.take(directory) else {
      if isComplete { return }
      throw lockedError(directory)
    }
    try withExtendedLifetime(lock) {
      // If recovery fails, for example on a read-only disk, a complete export can still be read.
      do { try recover(directory) } catch { if !isComplete { throw error } }
    }
  }

  /// Whether the directory would contain a complete export or nothing after recovery.
  static func isExportOrEmpty(_ directory: String) throws -> Bool {
    let names = try ExportFiles.names(in: directory)
    if names.contains(ExportManifest.fileName) || names.allSatisfy({ Folder(of: $0) != nil }) { return true }
    return try folders(of: directory).contains { folder in
      folder.kind != .staged && ExportFiles.exists("\(folder.path)/\(ExportManifest.fileName)")
    }
  }

  private static func folders(of directory: String) throws -> [(kind: Folder, path: String)] {
    try ExportFiles.names(in: directory).compactMap { name in
      let path = "\(directory)/\(name)"
      guard let kind = Folder(of: name), ExportFiles.isRealDirectory(path) else { return nil }
      return (kind, path)
    }
  }
}
