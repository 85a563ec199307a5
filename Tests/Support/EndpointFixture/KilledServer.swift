// A killed server is a process of the built server executable that tests end with SIGKILL, to simulate a crash.

import Foundation
import NIOCore
import NIOPosix
import Testing

/// A server process with a data directory and fixed ports. After a kill, a new process can use the same
/// directory and ports.
final class KilledServer: Sendable {
  private let process: Process

  init(directory: String, firestorePort: Int = 0, databasePort: Int = 0) throws {
    process = Process()
    let environment = ProcessInfo.processInfo.environment
    process.executableURL =
      environment["HEARTH_BIN"].map { URL(fileURLWithPath: $0) }
      ?? URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent("hearth")
    process.arguments = [
      "serve", "--emulator", "--host", "127.0.0.1", "--firestore-port", "\(firestorePort)",
      "--database-port", "\(databasePort)", "--data", directory, "--log-level", "error",
    ]
    process.environment = environment.filter { !$0.key.hasPrefix("HEARTH_") }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  func kill() async {
    Foundation.kill(process.processIdentifier, SIGKILL)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      Thread.detachNewThread { [process] in
        process.waitUntilExit()
        continuation.resume()
      }
    }
  }

  static func freePort() async throws -> Int {
    let probe = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = probe.localAddress?.port
    // The probe only finds a free port, so it is closed immediately. If a client connected to it, the
    // connection would keep the port in use.
    try await probe.close()
    return try #require(port)
  }
}
