// The file by which the Firebase CLI finds the hub of a project's emulators: `hub-<project>.json` among the temporary files.
//
// Invariant: the file of another process that still runs is neither replaced nor removed.

import Endpoints
import Foundation
import Logging

/// A hub's locator file.
struct HubLocator: Sendable {
  private let path: String

  /// Writes the file; nil, with a word in the log, where that cannot be.
  init?(
    project: String, host: String, port: Int, version: String, log: Logger,
    directory: String = NSTemporaryDirectory()
  ) {
    guard !project.isEmpty, !project.contains("/"), !project.utf8.contains(0) else { return nil }
    path = URL(fileURLWithPath: directory).appendingPathComponent("hub-\(project).json").path
    if let process = Self.process(at: path), process != getpid(), kill(process, 0) == 0 || errno == EPERM {
      log.notice(
        "other emulators of the project run already, and keep the file by which tools find them",
        metadata: ["file": "\(path)", "pid": "\(process)"])
      return nil
    }
    let bytes = EmulatorHub.locator(host: host, port: port, version: version, process: getpid())
    guard Self.put(bytes, at: path) else {
      log.notice(
        "tools will not find the hub: \(path) cannot be written: \(String(cString: strerror(errno)))")
      return nil
    }
  }

  /// Writes a file whole or not at all. If it fails, `errno` has the reason.
  private static func put(_ bytes: [UInt8], at path: String) -> Bool {
    let temporary = "\(path).\(getpid())"
    unlink(temporary)
    let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard file >= 0 else { return false }
    let isWritten = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == bytes.count
    let reason = errno
    close(file)
    if isWritten, rename(temporary, path) == 0 { return true }
    let code = isWritten ? errno : reason
    unlink(temporary)
    errno = code
    return false
  }

  /// Removes the file, if it is still this process's.
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
