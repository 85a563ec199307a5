// An observer of the app, with its callbacks.
//
// Invariant: nothing is delivered after the observer was removed on the core's queue, and a single-event observer gets
// one event.

import Foundation
import RealtimeModel

/// The event for the app: the snapshot and the key of the preceding sibling.
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
