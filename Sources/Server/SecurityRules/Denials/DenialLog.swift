// The denial log keeps the last denied operations of one database in memory, so that the server's operators can read
// them.
//
// Invariant: the log never exceeds its limits of entries and bytes; it removes the oldest entries first. Above a rate
// (`entriesPerSecond`), the log only counts denials, which bounds the time that explanations take.

package import JSON
import Locking

/// A denied operation.
package struct DenialEntry: Sendable {
  /// The number of the denial in its log, from 1.
  package let id: Int64
  /// The members of the denial's JSON for operators, without ``id``.
  package let members: JSONObject
  /// The recorded request, which other rules can decide again; nil if it was not recorded, for example because it is
  /// large.
  package let request: RecordedRequest?
  /// The bytes that the entry takes.
  let bytes: Int
}

/// The limits of denial logs.
package struct DenialLogLimits: Sendable {
  /// Maximum entries of one log.
  package var entries = 1_000
  /// Maximum bytes of one log: the text of its entries and their recorded requests.
  package var bytes = 1 << 20
  /// Maximum bytes of one recorded request.
  package var requestBytes = 64 << 10
  /// Maximum denials that a log explains and keeps in one second.
  package var entriesPerSecond = 100
  /// Maximum databases with a log. A further database replaces the log that was idle longest.
  package var logs = 64

  /// The standard limits.
  package init() {}
}

/// The denied operations of one database.
package final class DenialLog: Sendable {
  private struct State {
    /// The entries, the oldest first.
    var entries: [DenialEntry] = []
    var bytes = 0
    var nextID: Int64 = 1
    /// Denials that the log only counted, because too many came in one second.
    var omitted: Int64 = 0
    /// The second (since 1970) of the last denial, and the number of denials in it that the log explained.
    var second: Int64 = 0
    var admitted = 0
  }

  let limits: DenialLogLimits
  private let state = Guarded(State())

  init(_ limits: DenialLogLimits) { self.limits = limits }

  /// The second (since 1970) of the last denial.
  var lastSecond: Int64 { state.withLock { $0.second } }

  /// Whether to explain and keep a denial. If not, the denial is counted as omitted.
  /// - Parameter microseconds: the time of the denial in microseconds since 1970.
  func admit(at microseconds: Int64) -> Bool {
    state.withLock { state in
      let second = microseconds / 1_000_000
      if state.second != second {
        state.second = second
        state.admitted = 0
      }
      guard state.admitted < limits.entriesPerSecond else {
        state.omitted += 1
        return false
      }
      state.admitted += 1
      return true
    }
  }

  /// Adds a denial. Removes the oldest entries beyond the limits.
  func append(_ members: JSONObject, request: RecordedRequest?) {
    let bytes = JSONValue.object(members).json().count + (request?.bytes ?? 0)
    state.withLock { state in
      state.entries.append(DenialEntry(id: state.nextID, members: members, request: request, bytes: bytes))
      state.nextID += 1
      state.bytes += bytes
      var removed = 0
      while state.entries.count - removed > limits.entries
        || (state.bytes > limits.bytes && removed < state.entries.count - 1)
      {
        state.bytes -= state.entries[removed].bytes
        removed += 1
      }
      state.entries.removeFirst(removed)
      precondition(
        state.entries.count <= limits.entries && state.bytes >= 0,
        "invariant: a denial log is within its limits")
    }
  }

  /// Entries, the newest first.
  /// - Parameters:
  ///   - id: only entries before this number are returned; nil to begin with the newest.
  ///   - count: the maximum number of entries.
  package func entries(before id: Int64?, count: Int) -> [DenialEntry] {
    state.withLock { state in
      Array(state.entries.reversed().lazy.filter { entry in id.map { entry.id < $0 } ?? true }.prefix(count))
    }
  }

  /// The entry with a number; nil if the log no longer keeps it.
  package func entry(_ id: Int64) -> DenialEntry? {
    state.withLock { state in state.entries.first { $0.id == id } }
  }

  /// The number of denials that were not kept because too many came in one second.
  package var omittedCount: Int64 { state.withLock { $0.omitted } }
}

/// The denial logs of all databases of one product.
package final class DenialLogs<Database: Hashable & Sendable>: Sendable {
  private let limits: DenialLogLimits
  private let logs = Guarded<[Database: DenialLog]>([:])

  /// Makes the logs of a server.
  package init(_ limits: DenialLogLimits = DenialLogLimits()) { self.limits = limits }

  /// The log of a database; nil if nothing was denied.
  package func existingLog(_ database: Database) -> DenialLog? { logs.withLock { $0[database] } }

  /// The log of a database, made if there is none.
  func log(of database: Database) -> DenialLog {
    logs.withLock { logs in
      if let log = logs[database] { return log }
      if logs.count >= limits.logs, let idle = logs.min(by: { $0.value.lastSecond < $1.value.lastSecond }) {
        logs[idle.key] = nil
      }
      let log = DenialLog(limits)
      logs[database] = log
      return log
    }
  }
}
