// Times commits in a separate process. The load generator has one event loop: its work for thousands of streams or
// sign-ins would delay the measured commits, and the times would include that delay.

import Foundation
import NIOCore
import NIOPosix

/// A process that sends commits at a steady rate on request.
final class CommitProbe {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// Starts the process. Start it before thousands of sockets are open, because Foundation has crashed otherwise.
  init(_ server: ChildProcess, _ setting: Setting) throws {
    process.executableURL = URL(fileURLWithPath: setting.program)
    process.arguments = ["commits", String(server.port)]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    RunCleanup.register(process: process.processIdentifier)
  }

  /// Sends commits, and ends the process.
  /// - Returns: the time of each commit in microseconds.
  func times(seconds: Double) async throws -> [Double] {
    input.fileHandleForWriting.write(Data("\(seconds)\n".utf8))
    let output = output.fileHandleForReading
    let text = await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(returning: String(decoding: output.readDataToEndOfFile(), as: UTF8.self))
      }
    }
    stop()
    let times = text.split(separator: "\n").compactMap { Double($0) }
    guard !times.isEmpty else { throw BenchmarkFailure("no commit was timed: \(text)") }
    return times
  }

  /// Ends the process.
  func stop() {
    process.terminate()
    process.waitUntilExit()
    RunCleanup.unregister(process: process.processIdentifier)
  }

  /// Runs in the process: waits for a line with the seconds, and prints the times.
  static func run(port: Int) async throws {
    guard let seconds = readLine().flatMap({ Double($0) }) else { return }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    do {
      let times = try await SteadyCommits.times(port: port, on: group, seconds: seconds)
      printLine(times.map { "\($0)" }.joined(separator: "\n"))
    } catch {
      printLine("\(error)")
    }
  }
}
