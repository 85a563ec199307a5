// Sends a message by a mail command such as `sendmail -t`.
//
// Invariant: a program that does not end within `timeoutSeconds` is killed.

import Foundation
import Locking
import NIOCore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Runs programs that accept a message on their standard input.
enum MailCommand {
  private static let timeoutSeconds: Int64 = 30

  /// Runs a program off the cooperative pool, and fails unless it exits with 0.
  /// - Parameters:
  ///   - arguments: the program and its arguments.
  ///   - group: the event loops of the timeout.
  static func run(_ arguments: [String], _ message: [UInt8], _ group: any EventLoopGroup) async throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: arguments.first ?? "")
    process.arguments = Array(arguments.dropFirst())
    let input = Pipe()
    process.standardInput = input
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let hasEnded = Guarded(false)
    let status = try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Int32, any Error>) in
      process.terminationHandler = { process in
        hasEnded.withLock { $0 = true }
        continuation.resume(returning: process.terminationStatus)
      }
      do { try process.run() } catch { return continuation.resume(throwing: error) }
      let identifier = process.processIdentifier
      group.next().scheduleTask(in: .seconds(timeoutSeconds)) {
        if !hasEnded.withLock({ $0 }) { kill(identifier, SIGKILL) }
      }
      // A message of a few thousand bytes fits into the pipe's buffer, so the write does not block.
      try? input.fileHandleForWriting.write(contentsOf: Data(message))
      try? input.fileHandleForWriting.close()
    }
    guard status == 0 else { throw DeliveryFailure("the command exited with \(status)") }
  }
}
