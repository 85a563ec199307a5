// What an export leaves in its directory that is killed on its way, and how it is put right by whoever comes next.
//
//     .hearth-export-<32 hexadecimal digits>.staged   being written: of no use without its end
//     .hearth-export-<32 hexadecimal digits>.old      what was in the directory, on its way out
//     .hearth-export-<32 hexadecimal digits>.new      whole, on its way in: from now on it is what counts
//
// Invariants: where the manifest is, everything is in its place, and what lies in the folders is of no use; nothing else
// than such folders is ever removed, and nothing that lies in the way is replaced.

import FirestoreModel

extension ExportDirectory {
  /// A folder that an export makes in its directory.
  enum Folder: String {
    case staged
    case old
    case new

    private static let prefix = ".hearth-export-"
    private static let digits = 32

    /// What sets the folders of one export apart from those of another.
    static var newID: String {
      (0..<digits).map { _ in String(Int.random(in: 0..<16), radix: 16) }.joined()
    }

    /// What the folder of this name is; nil for a name that no export gives.
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

  /// Puts a directory right that nobody exports to: what an export left there takes its place if that is empty, and is
  /// removed if not.
  static func recover(_ directory: String) throws {
    let names = try ExportFiles.names(in: directory)
    let folders = try folders(of: directory)
    if !names.contains(ExportManifest.fileName) {
      for kind in [Folder.new, .old] {
        let whole = folders.first { folder in
          folder.kind == kind && ExportFiles.exists("\(folder.path)/\(ExportManifest.fileName)")
        }
        guard let whole else { continue }
        do { try moveExport(from: whole.path, to: directory) } catch {
          throw FirestoreError.failedPrecondition(
            "An export to \(directory) was interrupted, and what it left in \(whole.path) cannot be put back: "
              + error.message)
        }
        break
      }
    }
    for folder in folders { try ExportFiles.remove(folder.path) }
  }

  /// Puts a directory right that is to be read. One without our folders is not touched, nor one that somebody exports to
  /// at the moment, whose export is whole as long as it has its manifest.
  static func recoverForReading(_ directory: String) throws {
    guard try !folders(of: directory).isEmpty else { return }
    let isWhole = ExportFiles.exists("\(directory)/\(ExportManifest.fileName)")
    guard let lock = try DirectoryLock.take(directory) else {
      if isWhole { return }
      throw isHeld(directory)
    }
    try withExtendedLifetime(lock) {
      // An export that can be read is read, also from a disk that cannot be written to.
      do { try recover(directory) } catch { if !isWhole { throw error } }
    }
  }

  /// Whether a directory holds an export or nothing, or will once it is put right.
  static func holdsExport(_ directory: String) throws -> Bool {
    let names = try ExportFiles.names(in: directory)
    if names.contains(ExportManifest.fileName) || names.allSatisfy({ Folder(of: $0) != nil }) { return true }
    return try folders(of: directory).contains { folder in
      folder.kind != .staged && ExportFiles.exists("\(folder.path)/\(ExportManifest.fileName)")
    }
  }

  private static func folders(of directory: String) throws -> [(kind: Folder, path: String)] {
    try ExportFiles.names(in: directory).compactMap { name in
      let path = "\(directory)/\(name)"
      guard let kind = Folder(of: name), ExportFiles.isOwnDirectory(path) else { return nil }
      return (kind, path)
    }
  }
}
