// A directory on its way to hold an export: everything is written beside what it holds, and takes its place at the end.
//
// Inside the directory, not next to it, so that one that is mounted can be replaced, too. The manifest comes last: a
// directory that has it is whole.
//
// Invariants: one process at a time replaces what a directory holds; at every moment a power cut, or the end of the
// process, leaves the old export or the new one whole, be it in a folder of ours, from where the next one to come puts it
// back (`ExportDirectory+Recovery.swift`); whoever is told that an export is there has it on disk.

import FirestoreModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

struct ExportDirectory: Sendable {
  private let path: String
  private let lock: DirectoryLock
  private let id: String
  /// Where the export is written.
  let staging: String

  /// Makes the directory, if it is missing, puts right what an export left there that did not end, and makes room.
  /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION for one that may not be replaced.
  init(_ path: String) throws {
    try Self.checkKind(of: path)
    try ExportFiles.makeDirectories(path)
    let real = try Self.realPath(of: path)
    guard let lock = try DirectoryLock.take(real) else { throw Self.isHeld(path) }
    try Self.recover(real)
    let names = try ExportFiles.names(in: real)
    guard names.contains(ExportManifest.fileName) || names.isEmpty else {
      throw Self.holdsNoExport(path)
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

  /// The path without links of a directory that is there and may be replaced.
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

  private static func holdsNoExport(_ path: String) -> FirestoreError {
    .failedPrecondition(
      "\(path) is not empty and holds no export (no \(ExportManifest.fileName)), so it is not replaced. Choose "
        + "another directory, or empty this one.")
  }

  /// Asks whether an export to a path could be made, without making anything.
  /// - Throws: as ``init(_:)``; what shows only when it is made, such as a full disk, is not seen.
  static func check(_ path: String) throws {
    try checkKind(of: path)
    guard ExportFiles.exists(path) else { return try ExportFiles.checkMakingDirectories(path) }
    let real = try realPath(of: path)
    guard try holdsExport(real) else { throw holdsNoExport(path) }
    try ExportFiles.checkWriting(real)
  }

  static func isHeld(_ path: String) -> FirestoreError {
    .failedPrecondition("Another process is exporting to \(path). Wait for it, or choose another directory.")
  }

  /// Puts the export into the place of what was there, which comes back if that fails. Returns once it is on disk.
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
      // From here on the new export is the one that is put in place whatever happens.
      try ExportFiles.move(staging, to: new)
      try ExportFiles.syncDirectory(path)
      try Self.moveExport(from: new, to: path)
    } catch {
      takeBack(old, new)
      throw FirestoreError.internalError("The export in \(path) could not be replaced: \(error.message)")
    }
    for folder in [old, new] { try? ExportFiles.remove(folder) }
    lock.release()
  }

  /// Undoes as much of a replacement as can be undone; what cannot, the next one to come puts right.
  private func takeBack(_ old: String, _ new: String) {
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

  /// Moves what an export has, its manifest first: without it, what still lies there passes for no export.
  private static func moveAway(
    _ names: [String], from source: String, to target: String
  ) throws(ExportFiles.Failure) {
    try move(names.filter { $0 == ExportManifest.fileName }, from: source, to: target)
    try move(names.filter { $0 != ExportManifest.fileName }, from: source, to: target)
  }

  /// Moves an export to where it is to be found, its manifest last.
  static func moveExport(from source: String, to target: String) throws(ExportFiles.Failure) {
    let names = try ExportFiles.names(in: source)
    try move(names.filter { $0 != ExportManifest.fileName }, from: source, to: target)
    try move(names.filter { $0 == ExportManifest.fileName }, from: source, to: target)
  }

  /// Moves files between two directories. Returns once that is on disk, in the one where they arrive first.
  private static func move(
    _ names: [String], from source: String, to target: String
  ) throws(ExportFiles.Failure) {
    guard !names.isEmpty else { return }
    for name in names { try ExportFiles.move("\(source)/\(name)", to: "\(target)/\(name)") }
    try ExportFiles.syncDirectory(target)
    try ExportFiles.syncDirectory(source)
  }

  /// Removes what was written so far.
  func abandon() async {
    _ = try? await ExportFiles.blocking(.internalError) { [staging, lock] in
      defer { lock.release() }
      try ExportFiles.remove(staging)
    }
  }
}
