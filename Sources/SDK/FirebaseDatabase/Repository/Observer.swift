// An app's observer: where its events go. Invariant: nothing is delivered after the observer was
// removed on the core's queue, and a single observer gets one event.

import Foundation
import RealtimeModel

/// What an event carries to the app: the snapshot and the key of the sibling before it.
struct SnapshotEvent: Sendable {
  let snapshot: DataSnapshot
  let previousKey: String?
}

/// One observer of one query.
final class Observer: Sendable {
  let registration: ObserverRegistration
  let path: Path
  let query: QuerySpec
  /// Whether it is removed after its first event.
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
