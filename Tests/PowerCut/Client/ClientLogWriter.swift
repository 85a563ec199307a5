// A client log writer appends lines to a file that simulated power cuts do not affect.
//
// A write is durable once the log of the cache, and then the directory of the cache, were synced after the write's
// commit. The SDK syncs the log first and then the directory. The first sync of the directory after the commit may
// belong to a sync of the log that began before the commit. The second sync of the directory does not.

import Glibc
import Locking

/// Records the writes of one client.
final class ClientLogWriter: Sendable {
  private let descriptor: Int32
  private let state = Guarded(State())

  private struct State {
    var lastSeen = 0
    /// The writes that may not be durable, each with the number of the directory's syncs when the app saw it.
    var unsynced: [(number: Int, syncs: Int)] = []
  }

  init?(_ path: String) {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// The last write that the app saw.
  var lastSeen: Int { state.withLock { $0.lastSeen } }

  func append(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
  }

  /// Records that the app received the event of a write.
  func recordEvent(of number: Int) {
    append("shown \(number)")
    let syncs = ClientLogWriter.directorySyncs
    let durable = state.withLock { state in
      state.lastSeen = number
      state.unsynced.append((number, syncs))
      let synced = state.unsynced.prefix { $0.syncs + 2 <= syncs }
      state.unsynced.removeFirst(synced.count)
      return synced.last?.number
    }
    if let durable { append("durable \(durable)") }
  }

  /// How often the simulated disk synced the directory of the cache.
  private static var directorySyncs: Int {
    typealias Function = @convention(c) () -> Int
    guard let symbol = dlsym(nil, "powercut_directory_syncs") else { return 0 }
    return unsafeBitCast(symbol, to: Function.self)()
  }
}
