// A directory on its way to hold an export: everything is written beside what it holds, and takes its place at the end.
//
// Inside the directory, not next to it, so that one that is mounted can be replaced, too. The manifest comes last: a
// directory that has it is whole.

import FirestoreModel
import Foundation

struct ExportDirectory: Sendable {
  private static let stagingPrefix = ".hearth-export-"

  private let path: String
  /// Where the export is written.
  let staging: String

  /// Makes the directory, if it is missing, and room in it.
  /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION for one that may not be replaced.
  init(_ path: String) throws {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw FirestoreError.invalidArgument("An export needs the path of a directory.")
    }
    try ExportFiles.makeDirectories(path)
    guard ExportFiles.isDirectory(path) else {
      throw FirestoreError.failedPrecondition("\(path) is no directory.")
    }
    let real = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    let here = URL(fileURLWithPath: FileManager.default.currentDirectoryPath).resolvingSymlinksInPath().path
    guard real != "/", here != real, !here.hasPrefix(real + "/") else {
      throw FirestoreError.failedPrecondition(
        "An export may not replace the current directory or one above it: \(path). Choose a directory of its own."
      )
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: real)
    guard names.contains(ExportManifest.fileName) || names.allSatisfy({ $0.hasPrefix(Self.stagingPrefix) })
    else {
      throw FirestoreError.failedPrecondition(
        "\(path) is not empty and holds no export (no \(ExportManifest.fileName)), so it is not replaced. Choose "
          + "another directory, or empty this one.")
    }
    self.path = real
    staging = "\(real)/\(Self.stagingPrefix)\(UUID().uuidString)"
    try ExportFiles.makeDirectories(staging)
  }

  /// Puts the export into the place of what was there, which comes back if that fails.
  func replace(with manifest: ExportManifest) throws {
    try ExportFiles.write(manifest.json, to: "\(staging)/\(ExportManifest.fileName)")
    let files = FileManager.default
    let aside = "\(path)/\(Self.stagingPrefix)\(UUID().uuidString)"
    try ExportFiles.makeDirectories(aside)
    var away: [String] = []
    var here: [String] = []
    do {
      // The old manifest goes first and the new one comes last, so that no half of either passes for a whole export.
      // What other exports have begun to write is theirs.
      let old = try files.contentsOfDirectory(atPath: path).filter { !$0.hasPrefix(Self.stagingPrefix) }
      for name in old.sorted(by: Self.manifestFirst) {
        try files.moveItem(atPath: "\(path)/\(name)", toPath: "\(aside)/\(name)")
        away.append(name)
      }
      for name in try files.contentsOfDirectory(atPath: staging).sorted(by: Self.manifestFirst).reversed() {
        try files.moveItem(atPath: "\(staging)/\(name)", toPath: "\(path)/\(name)")
        here.append(name)
      }
    } catch {
      for name in here { try? files.removeItem(atPath: "\(path)/\(name)") }
      for name in away.reversed() {
        try? files.moveItem(atPath: "\(aside)/\(name)", toPath: "\(path)/\(name)")
      }
      // Only if it is empty: what could not be put back stays.
      if (try? files.contentsOfDirectory(atPath: aside).isEmpty) == true {
        try? files.removeItem(atPath: aside)
      }
      throw FirestoreError.internalError(
        "The export in \(path) could not be replaced: \((error as NSError).localizedDescription)")
    }
    try? files.removeItem(atPath: aside)
    try? files.removeItem(atPath: staging)
  }

  private static func manifestFirst(_ a: String, _ b: String) -> Bool {
    a == ExportManifest.fileName && b != a
  }

  /// Removes what was written so far.
  func abandon() async {
    _ = try? await ExportFiles.blocking(.internalError) { [staging] in
      try FileManager.default.removeItem(atPath: staging)
    }
  }
}
