// A child process: a server under test or a reference.

import Foundation

/// Prints a line without buffering, also into a pipe.
func printLine(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

final class ChildProcess {
  private let process = Process()
  private let output = Pipe()
  let port: Int

  var identifier: Int32 { process.processIdentifier }

  /// Starts a program and waits for the line with its port. `portOf` returns the port of a line, or nil. Reads
  /// lines until `portOf` has returned a port and, if `ready` is given, that line was printed.
  init(_ path: String, _ arguments: [String], ready: String? = nil, portOf: (String) -> Int?) throws {
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.standardOutput = output
    let errorOutput = Pipe()
    process.standardError = errorOutput
    try process.run()
    RunCleanup.register(process: process.processIdentifier)
    var found: Int?
    var text = ""
    scan: while true {
      let bytes = output.fileHandleForReading.availableData
      if bytes.isEmpty { break }
      text += String(decoding: bytes, as: UTF8.self)
      var isReady = ready == nil
      for line in text.split(separator: "\n") {
        if found == nil, let port = portOf(String(line)) { found = port }
        if let ready, line.contains(ready) { isReady = true }
      }
      if found != nil, isReady { break scan }
    }
    guard let found else {
      process.terminate()
      RunCleanup.unregister(process: process.processIdentifier)
      let errorText = String(decoding: errorOutput.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      throw BenchmarkFailure("\(path) \(arguments.joined(separator: " ")) did not start: \(text)\(errorText)")
    }
    port = found
    // Later output is read too, because full pipes would block the program.
    for pipe in [output, errorOutput] {
      pipe.fileHandleForReading.readabilityHandler = { handle in
        if handle.availableData.isEmpty { handle.readabilityHandler = nil }
      }
    }
  }

  /// The resident memory, in bytes.
  func residentBytes() throws -> Int {
    // Starting a process while thousands of sockets are open has crashed Foundation. Linux has the figure in a
    // file.
    if let bytes = statusBytes("VmRSS:") { return bytes }
    let ps = Process()
    let pipe = Pipe()
    ps.executableURL = URL(fileURLWithPath: "/bin/ps")
    ps.arguments = ["-o", "rss=", "-p", "\(identifier)"]
    ps.standardOutput = pipe
    try ps.run()
    ps.waitUntilExit()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    guard let kilobytes = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw BenchmarkFailure("ps reported no memory of process \(identifier)")
    }
    return kilobytes * 1024
  }

  /// The peak resident memory, in bytes; the current one on systems without that figure.
  func peakBytes() throws -> Int { try statusBytes("VmHWM:") ?? residentBytes() }

  private func statusBytes(_ field: String) -> Int? {
    guard let status = try? String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix(field) })
    else { return nil }
    return line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) }.map { $0 * 1024 }
  }

  /// The processor time of all threads so far, in seconds; nil on systems without a file for it.
  func processorSeconds() -> Double? {
    guard let text = try? String(contentsOfFile: "/proc/\(identifier)/stat", encoding: .utf8),
      let end = text.lastIndex(of: ")")
    else { return nil }
    // The fields after the name, which is in brackets: user and system time are the 12th and 13th, in ticks.
    let fields = text[text.index(after: end)...].split(separator: " ")
    guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
      return nil
    }
    return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  /// Waits until the process has used almost no processor time for two seconds; at most ten minutes.
  func waitUntilIdle() async throws {
    var quiet = 0
    for _ in 0..<600 where quiet < 2 {
      guard let before = processorSeconds() else { return }
      try await Task.sleep(for: .seconds(1))
      quiet = (processorSeconds() ?? .infinity) - before < 0.05 ? quiet + 1 : 0
    }
    guard quiet == 2 else { throw BenchmarkFailure("the server was still at work after ten minutes") }
  }

  /// Ends the process and waits for its end, at most 30 s.
  func stop() {
    process.terminate()
    let deadline = ContinuousClock.now + .seconds(30)
    while process.isRunning {
      if ContinuousClock.now > deadline { kill(identifier, SIGKILL) }
      Thread.sleep(forTimeInterval: 0.01)
    }
    RunCleanup.unregister(process: identifier)
  }
}
