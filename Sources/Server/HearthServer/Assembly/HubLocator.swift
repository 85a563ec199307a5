// The hub locator is the file `hub-<project>.json` in the temporary directory. The Firebase CLI reads it to
// find the emulator hub of a project. The hub is a port that lists the project's emulators.
//
// Invariant: a file of another running process is neither replaced nor removed.

import EmulatorSuite
import Foundation
import Logging

/// The locator file of a hub.
struct HubLocator: Sendable {
  private let path: String

  /// Writes the file. Returns nil, and logs the reason, if the file belongs to another running process or
  /// cannot be written.
  init?(
    project: String, host: String, port: Int, version: String, log: Logger,
    directory: String = NSTemporaryDirectory()
  ) {
    guard !project.isEmpty, !project.contains("/"), !project.utf8.contains(0) else { return nil }
    path = URL(fileURLWithPath: directory).appendingPathComponent("hub-\(project).json").path
    if let process = Self.process(at: path), process != getpid(), kill(process, 0) == 0 || errno == EPERM {
      log.notice(
        "other emulators of the project are running and own the locator file of their hub",
        metadata: ["file": "\(path)", "pid": "\(process)"])
      return nil
    }
    let bytes = EmulatorHub.locator(host: host, port: port, version: version, process: getpid())
    guard Self.writeAtomically(bytes, to: path) else {
      log.notice(
        "tools cannot find the hub: its locator file \(path) cannot be written: \(String(cString: strerror(errno)))"
      )
      return nil
    }
  }

  /// Writes a file atomically. If it fails, `errno` has the reason.
  private static func writeAtomically(_ bytes: [UInt8], to path: String) -> Bool {
    let temporary = "\(path).\(getpid())"
    unlink(temporary)
    let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard file >= 0 else { return false }
    let isWritten = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == bytes.count
    let writeError = errno
    close(file)
    if isWritten, rename(temporary, path) == 0 { return true }
    let code = isWritten ? errno : writeError
    unlink(temporary)
    errno = code
    return false
  }

  /// Removes the file if it still belongs to this process.
  func remove() {
    guard Self.process(at: path) == getpid() else { return }
    try? FileManager.default.removeItem(atPath: path)
  }

  private static func process(at path: String) -> Int32? {
    struct Locator: Decodable { var pid: Int32 }
    guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return nil }
    return (try? JSONDecoder().decode(Locator.self, from: data))?.pid
  }
}
