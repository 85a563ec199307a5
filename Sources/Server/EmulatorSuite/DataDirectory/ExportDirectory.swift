// Replaces the contents of a directory by a new export atomically. The new export is written to a folder inside the
// directory, so that the directory may be a mount point, and then moved into place. The manifest comes last: a
// directory with a manifest is complete.
//
// Invariants
//   1. One process at a time replaces the contents of a directory.
//   2. After a power cut or the end of the process at any moment, the old or the new export is complete. It may be in a
//      folder from which the next export recovers it (`ExportDirectory+Recovery.swift`).
//   3. When `replace(with:)` returns, the export is on disk.

import FirestoreModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A directory that receives a new export.
struct ExportDirectory: Sendable {
  private let path: String
  private let lock: DirectoryLock
  private let id: String
  /// The folder in which the export is written.
  let staging: String

  /// Creates the directory if necessary, recovers it after an interrupted export, and creates the folder for the new
  /// export.
  /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION if its contents must not be replaced.
  init(_ path: String) throws {
    try Self.checkKind(of: path)
    try ExportFiles.makeDirectories(path)
    let real = try Self.realPath(of: path)
    guard let lock = try DirectoryLock.take(real) else { throw Self.lockedError(path) }
    try Self.recover(real)
    let names = try ExportFiles.names(in: real)
    guard names.contains(ExportManifest.fileName) || names.isEmpty else {
      throw Self.noExportError(path)
    }
    self.path = real
    self.lock = lock
    id = Folder.newID
    staging = Folder.staged.path(id, in: real)
    guard mkdir(staging, 0o777) == 0 else { throw ExportFiles.Failure("make the directory", staging) }
  }

  private static func checkKind(of path: String) throws(FirestoreError) {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw .invalidArgument("An export needs the path of a directory.")
    }
    guard !ExportFiles.exists(path) || ExportFiles.isDirectory(path) else {
      throw .failedPrecondition("\(path) is no directory.")
    }
  }

  /// Returns the path of an existing directory, with symbolic links resolved. Throws if its contents must not be
  /// replaced.
  private static func realPath(of path: String) throws -> String {
    let real = try ExportFiles.realPath(path)
    let here = try ExportFiles.realPath(".")
    guard real != "/", here != real, !here.hasPrefix(real + "/") else {
      throw FirestoreError.failedPrecondition(
        "An export may not replace the current directory or one above it: \(path). Choose a directory of its own."
      )
    }
    return real
  }

  private static func noExportError(_ path: String) -> FirestoreError {
    .failedPrecondition(
      "\(path) is not empty and holds no export (no \(ExportManifest.fileName)), so it is not replaced. Choose "
        + "another directory, or empty this one.")
  }

  /// Checks whether an export to a path is possible, without creating anything.
  /// - Throws: the errors of ``init(_:)``, except those that only writing reveals, such as a full disk.
  static func check(_ path: String) throws {
    try checkKind(of: path)
    guard ExportFiles.exists(path) else { return try ExportFiles.checkMakingDirectories(path) }
    let real = try realPath(of: path)
    guard try isExportOrEmpty(real) else { throw noExportError(path) }
    try ExportFiles.checkWriting(real)
  }

  static func lockedError(_ path: String) -> FirestoreError {
    .failedPrecondition("Another process is exporting to \(path). Wait for it, or choose another directory.")
  }

  /// Replaces the directory's contents by the export. The old contents are restored if that fails. Returns when the
  /// export is on disk.
  /// - Throws: FAILED_PRECONDITION for an export that could not be read again.
  func replace(with manifest: ExportManifest) throws {
    let text = manifest.json
    guard text.count <= ExportManifest.maximumBytes else {
      throw FirestoreError.failedPrecondition(
        "The export's \(ExportManifest.fileName) would have \(text.count) bytes for \(manifest.others.count) "
          + "databases; at most \(ExportManifest.maximumBytes) can be read again.")
    }
    try ExportFiles.write(text, to: "\(staging)/\(ExportManifest.fileName)")
    try ExportFiles.syncDirectories(staging)
    let old = Folder.old.path(id, in: path)
    let new = Folder.new.path(id, in: path)
    let names = try ExportFiles.names(in: path).filter { Folder(of: $0) == nil }
    do throws(ExportFiles.Failure) {
      if !names.isEmpty {
        guard mkdir(old, 0o777) == 0 else { throw ExportFiles.Failure("make the directory", old) }
        try ExportFiles.syncDirectory(path)
        try Self.moveAway(names, from: path, to: old)
      }
      // After this move, recovery completes the replacement if the process ends.
      try ExportFiles.move(staging, to: new)
      try ExportFiles.syncDirectory(path)
      try Self.moveExport(from: new, to: path)
    } catch {
      undo(old, new)
      throw FirestoreError.internalError("The export in \(path) could not be replaced: \(error.message)")
    }
    for folder in [old, new] { try? ExportFiles.remove(folder) }
    lock.release()
  }

  /// Undoes a failed replacement as far as possible. The next recovery undoes the remaining steps.
  private func undo(_ old: String, _ new: String) {
    do throws(ExportFiles.Failure) {
      if ExportFiles.exists(new) {
        let written = try ExportFiles.names(in: path).filter { Folder(of: $0) == nil }
        try Self.moveAway(written, from: path, to: new)
        try ExportFiles.move(new, to: staging)
      }
      guard ExportFiles.exists(old) else { return }
      try Self.moveExport(from: old, to: path)
      try ExportFiles.remove(old)
    } catch {}
  }

  /// Moves an export away, its manifest first. Without the manifest, the remaining files are not an export.
  private static func moveAway(
    _ names: [String], from source: String, to target: String
  ) throws(ExportFiles.Failure) {
    try move(names.filter { $0 == ExportManifest.fileName }, from: source, to: target)
    try move(names.filter { $0 != ExportManifest.fileName }, from: source, to: target)
  }

  /// Moves an export into place, its manifest last.
  static func moveExport(from source: String, to target: String) throws(ExportFiles.Failure) {
    let names = try ExportFiles.names(in: source)
    try move(names.filter { $0 != ExportManifest.fileName }, from: source, to: target)
    try move(names.filter { $0 == ExportManifest.fileName }, from: source, to: target)
  }

  /// Moves files between two directories. The target is synced to the disk before the source, so that a power cut
  /// cannot remove a file from both.
  private static func move(
    _ names: [String], from source: String, to target: String
  ) throws(ExportFiles.Failure) {
    guard !names.isEmpty else { return }
    for name in names { try ExportFiles.move("\(source)/\(name)", to: "\(target)/\(name)") }
    try ExportFiles.syncDirectory(target)
    try ExportFiles.syncDirectory(source)
  }

  /// Removes the files that were written so far.
  func discard() async {
    _ = try? await ExportFiles.blocking(.internalError) { [staging, lock] in
      defer { lock.release() }
      try ExportFiles.remove(staging)
    }
  }
}
