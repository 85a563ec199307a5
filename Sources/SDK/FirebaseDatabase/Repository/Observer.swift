// An observer that the app has added, with its callbacks.
//
// Invariant: an observer receives nothing after the core has removed it, and a single-event observer receives
// one event.

import Foundation
import RealtimeModel

/// An event for the app: the snapshot and the key of the preceding sibling.
struct SnapshotEvent: Sendable {
  let snapshot: DataSnapshot
  let previousKey: String?
}

/// One observer of one query.
final class Observer: Sendable {
  let registration: ObserverRegistration
  let path: Path
  let query: QuerySpec
  /// Whether the observer is removed after its first event.
  let isSingle: Bool
  let deliver: @Sendable (SnapshotEvent) -> Void
  let cancel: (@Sendable (any Error) -> Void)?

  init(
    registration: ObserverRegistration, path: Path, query: QuerySpec, isSingle: Bool,
    deliver: @escaping @Sendable (SnapshotEvent) -> Void, cancel: (@Sendable (any Error) -> Void)?
  ) {
    self.registration = registration
    self.path = path
    self.query = query
    self.isSingle = isSingle
    self.deliver = deliver
    self.cancel = cancel
  }
}
