// Tests of signals that arrive when the start is almost complete.

import Foundation
import Logging
import NIOConcurrencyHelpers
import Testing

@testable import HearthServer

@Suite("Signals at the end of a start", .timeLimit(.minutes(5)))
struct LateSignalTests {
  private let log = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  /// Makes signal handling that does not end the process, because that would end the tests.
  private func signals() -> ProcessSignals {
    ProcessSignals(isExporting: true, log: log, exit: { _ in })
  }

  @Test("becomeReady() returns a signal that was received during the start")
  func earlierSignal() {
    let late = signals()
    late.receive(SIGTERM)
    #expect(late.becomeReady() == SIGTERM)
    let inTime = signals()
    #expect(inTime.becomeReady() == nil)
    inTime.receive(SIGINT)
    #expect(inTime.stopSignal == SIGINT)
  }

  @Test(
    "A signal at the end of the start stops the server without an export and without reporting it ready")
  func lateSignalSkipsExport() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    var configuration = HearthConfiguration.forTesting()
    configuration.exportOnExit = directory.path
    let server = HearthServer(configuration, log: log)
    let listeners = try await server.start()
    let signals = signals()
    signals.receive(SIGTERM)
    let wasReady = NIOLockedValueBox(false)
    let failure = await #expect(throws: HearthServer.StoppedBeforeReady.self) {
      try await HearthServer.serve(server, listeners, signals) { _ in wasReady.withLockedValue { $0 = true } }
    }
    #expect(failure?.exitCode == 128 + SIGTERM)
    #expect(!wasReady.withLockedValue { $0 })
    #expect(server.listeners.isEmpty)
    #expect(!FileManager.default.fileExists(atPath: directory.path))
  }
}
