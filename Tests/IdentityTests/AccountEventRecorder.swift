// Collects account events.

import Identity
import Locking

final class AccountEventRecorder: Sendable {
  private let events = Guarded<[AccountEvent]>([])

  func add(_ event: AccountEvent) { events.withLock { $0.append(event) } }

  var all: [AccountEvent] { events.withLock { $0 } }
}
