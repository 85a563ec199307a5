// Google's emulator of Cloud Firestore, as the Debian package of the Google Cloud CLI installs it.

import Foundation
import NIOCore
import NIOPosix

/// Starts Google's emulator.
enum GoogleEmulator {
  private static let archive =
    "/usr/lib/google-cloud-sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"

  /// Whether the emulator and Java are installed.
  static var isInstalled: Bool {
    let files = FileManager.default
    return files.fileExists(atPath: archive) && files.isExecutableFile(atPath: "/usr/bin/java")
  }

  /// Starts the emulator on a free port, with Java's default limit of memory: a quarter of the machine's.
  static func start() throws -> ChildProcess {
    let probe = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).wait()
    guard let port = probe.localAddress?.port else { throw BenchmarkFailure("no port is free") }
    try probe.close().wait()
    return try ChildProcess(
      "/usr/bin/java",
      [
        "-Duser.language=en", "-cp", archive,
        "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "--host", "127.0.0.1", "--port",
        String(port),
      ]
    ) { $0.contains("is now running") ? port : nil }
  }
}
