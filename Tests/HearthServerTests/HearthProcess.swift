// A Hearth process: the built command `hearth` as a child process. Tests wait for its output and its end.

import Foundation
import NIOConcurrencyHelpers

final class HearthProcess: Sendable {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  private struct State {
    var output = ""
    var errors = ""
    var waiters: [(needle: String, continuation: CheckedContinuation<Bool, Never>)] = []
    var exitCode: Int32?
    var exitWaiters: [CheckedContinuation<Int32, Never>] = []
  }

  private let process: Process
  private let state = NIOLockedValueBox(State())

  /// The command in the directory of the test bundle, or at the path in the environment variable HEARTH_BIN.
  private static var binary: URL {
    if let path = ProcessInfo.processInfo.environment["HEARTH_BIN"] { return URL(fileURLWithPath: path) }
    return URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(
      "hearth")
  }

  /// Starts the command, with a limit of open files or of the address space in KiB if one is given.
  init(
    _ arguments: [String], environment: [String: String] = [:], directory: URL? = nil, openFiles: Int? = nil,
    addressSpace: Int? = nil
  ) throws {
    process = Process()
    process.executableURL = Self.binary
    process.arguments = arguments
    let limits = [openFiles.map { "ulimit -n \($0); " }, addressSpace.map { "ulimit -v \($0); " }]
    if limits.contains(where: { $0 != nil }) {
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      process.arguments =
        ["-c", "\(limits.compactMap(\.self).joined())exec \"$0\" \"$@\"", Self.binary.path] + arguments
    }
    process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HEARTH_") }
      .merging(environment) { _, new in new }
    if let directory { process.currentDirectoryURL = directory }
    let output = Pipe()
    let errors = Pipe()
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    // Dedicated threads read until the pipes end. Foundation's readability handlers are not used, because
    // dispatch's event loop has crashed when a file descriptor was closed and immediately reused.
    let finished = DispatchGroup()
    Self.read(output, to: \.output, state, finished)
    Self.read(errors, to: \.errors, state, finished)
    let process = process
    let state = state
    Thread.detachNewThread {
      finished.wait()
      process.waitUntilExit()
      let code =
        process.terminationReason == .uncaughtSignal ? -process.terminationStatus : process.terminationStatus
      let waiting = state.withLockedValue { state in
        state.exitCode = code
        defer {
          state.waiters = []
          state.exitWaiters = []
        }
        return (state.waiters, state.exitWaiters)
      }
      for waiter in waiting.0 { waiter.continuation.resume(returning: false) }
      for waiter in waiting.1 { waiter.resume(returning: code) }
    }
  }

  private static func read(
    _ pipe: Pipe, to path: any WritableKeyPath<State, String> & Sendable, _ state: NIOLockedValueBox<State>,
    _ finished: DispatchGroup
  ) {
    finished.enter()
    Thread.detachNewThread {
      while case let data = pipe.fileHandleForReading.availableData, !data.isEmpty {
        append(String(decoding: data, as: UTF8.self), to: path, state)
      }
      finished.leave()
    }
  }

  var output: String { state.withLockedValue { $0.output } }
  var errors: String { state.withLockedValue { $0.errors } }
  var identifier: Int32 { process.processIdentifier }

  /// Waits for a string on standard output.
  func wait(for needle: String) async throws {
    let seen = await withCheckedContinuation { continuation in
      let answer: Bool? = state.withLockedValue { state in
        if state.output.contains(needle) { return true }
        if state.exitCode != nil { return false }
        state.waiters.append((needle, continuation))
        return nil
      }
      if let answer { continuation.resume(returning: answer) }
    }
    guard seen else { throw Failure(description: "hearth ended without '\(needle)':\n\(output)\n\(errors)") }
  }

  /// Waits for the end of the process.
  /// - Returns: the exit code; the negative number of a signal that ended it.
  func wait() async -> Int32 {
    await withCheckedContinuation { continuation in
      let code: Int32? = state.withLockedValue { state in
        if let code = state.exitCode { return code }
        state.exitWaiters.append(continuation)
        return nil
      }
      if let code { continuation.resume(returning: code) }
    }
  }

  func signal(_ signal: Int32) {
    kill(process.processIdentifier, signal)
  }

  /// The port that the output names for a product.
  func port(of product: String) throws -> Int {
    let line = output.split(separator: "\n").first { $0.hasPrefix(product) }
    guard let text = line?.split(separator: ":").last, let port = Int(text) else {
      throw Failure(description: "no line for \(product) in:\n\(output)")
    }
    return port
  }

  private static func append(
    _ text: String, to path: any WritableKeyPath<State, String> & Sendable, _ state: NIOLockedValueBox<State>
  ) {
    let ready = state.withLockedValue { state in
      state[keyPath: path] += text
      let ready = state.waiters.filter { state.output.contains($0.needle) }
      state.waiters.removeAll { state.output.contains($0.needle) }
      return ready
    }
    for waiter in ready { waiter.continuation.resume(returning: true) }
  }
}
