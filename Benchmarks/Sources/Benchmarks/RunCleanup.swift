// Cleanup after an interrupted run, which would leave servers and gigabytes of data.

import Dispatch
import Foundation
import NIOConcurrencyHelpers

/// Ends the servers and removes the directories of an interrupted run.
enum RunCleanup {
  private struct State {
    var processes: Set<Int32> = []
    var directories: Set<String> = []
  }

  private static let state = NIOLockedValueBox(State())

  static func register(process: Int32) { state.withLockedValue { _ = $0.processes.insert(process) } }
  static func unregister(process: Int32) { state.withLockedValue { _ = $0.processes.remove(process) } }
  static func register(directory: String) { state.withLockedValue { _ = $0.directories.insert(directory) } }

  /// While the returned object exists, SIGINT and SIGTERM clean up before they end the process.
  static func cleanUpOnSignals() -> [any DispatchSourceSignal] {
    [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        let remaining = state.withLockedValue { $0 }
        // The servers' data is removed too, so they need not drain.
        for process in remaining.processes { kill(process, SIGKILL) }
        for directory in remaining.directories { try? FileManager.default.removeItem(atPath: directory) }
        exit(128 + number)
      }
      source.resume()
      return source
    }
  }
}
