// The published state of a database: its durable versions, and the followers of its log. A follower is a
// callback that receives each durable log record. All databases of a store share one published snapshot. If
// each had its own, an idle database would retain an old one.
//
// Invariants
//   1. The versions of a published state and the shared snapshot change together under one lock. A reader gets a
//      snapshot that contains exactly the commits up to `latest`.
//   2. `floor`, `newestCommit` and `delivered` are at most `latest`. None of the four versions ever falls.
//
// Decision: docs/decisions/0004-history-and-reads.md

import Locking

/// The state that the databases of a store share.
struct SharedState {
  /// The newest durable state of the engine; nil once the store is closed.
  var snapshot: (any EngineSnapshot)?
  /// The number of the newest published group of the ``CommitPipeline``.
  var groupNumber: UInt64 = 0
}

/// The durable, visible state of one database.
// SAFETY: every mutable field is only accessed under the lock of `published`.
final class PublishedState: @unchecked Sendable {
  typealias Deliver = @Sendable (LogRecord) -> Void

  let published: Guarded<SharedState>
  /// The version of the newest durable commit or reservation.
  private var latest: Version
  /// The version of the newest durable commit. It is below `latest` after a reservation, which changes no
  /// rows.
  private var newestCommit: Version
  /// Every record up to this version has been delivered to the followers.
  private var delivered: Version
  /// The oldest readable version.
  private var floor: Version
  private var followers: [(id: Int, deliver: Deliver)] = []
  private var lastFollowerID = 0
  private var isDelivering = false
  private var isRemoved = false

  init(_ published: Guarded<SharedState>, latest: Version, floor: Version) {
    self.published = published
    self.latest = latest
    self.newestCommit = latest
    self.delivered = latest
    self.floor = floor
  }

  /// A consistent copy of the published state, with its snapshot.
  struct PublishedView {
    var snapshot: any EngineSnapshot
    var latest: Version
    var newestCommit: Version
    var delivered: Version
    var floor: Version
  }

  /// The current state.
  /// - Throws: ``closed``.
  func publishedView() throws -> PublishedView {
    let view = published.withLock { published -> PublishedView? in
      guard !isRemoved, let snapshot = published.snapshot else { return nil }
      return PublishedView(
        snapshot: snapshot, latest: latest, newestCommit: newestCommit, delivered: delivered, floor: floor)
    }
    guard let view else { throw PublishedState.closed }
    return view
  }

  static let closed = StoreError.unavailable("the database is closed or removed")

  var latestVersion: Version { published.withLock { _ in latest } }

  /// Marks the database as removed. Later reads fail.
  func remove() {
    published.withLock { _ in
      isRemoved = true
      followers = []
    }
  }

  /// Raises the floor to a version, or to `latest` if that is lower. Never lowers it.
  func raiseFloor(to version: Version) {
    published.withLock { _ in floor = max(floor, min(version, latest)) }
  }

  var floorVersion: Version { published.withLock { _ in floor } }

  /// Publishes a durable call. The caller holds the lock of `published`.
  /// - Returns: the followers to which the record of the call must be delivered.
  func publish(_ commit: SequencedCommit) -> [(id: Int, deliver: Deliver)] {
    if commit.kind == .barrier {
      precondition(commit.version <= latest, "invariant: a barrier follows the commits that it waits for")
    } else {
      precondition(commit.version > latest, "invariant: published versions strictly increase")
      latest = commit.version
    }
    if commit.kind == .commit { newestCommit = latest }
    let receivers = commit.record == nil ? [] : followers
    if !receivers.isEmpty { isDelivering = true }
    if !isDelivering { delivered = latest }
    return receivers
  }

  /// Records that every published record has been delivered. The caller holds the lock of `published`.
  func markDelivered() {
    precondition(delivered <= latest, "invariant: only published records are delivered")
    isDelivering = false
    delivered = latest
  }

  /// Registers a follower of the records published from now on.
  /// - Returns: the follower's number, and the version above which delivery starts.
  func follow(_ deliver: @escaping Deliver) -> (id: Int, after: Version) {
    published.withLock { _ in
      lastFollowerID += 1
      followers.append((lastFollowerID, deliver))
      return (lastFollowerID, latest)
    }
  }

  func unfollow(_ id: Int) {
    published.withLock { _ in followers.removeAll { $0.id == id } }
  }
}

/// A follower's subscription. Unsubscribes when it is released.
final class FollowerSubscription: LogSubscription {
  let startsAfter: Version
  private let publishedState: PublishedState
  private let id: Int

  init(_ publishedState: PublishedState, _ deliver: @escaping PublishedState.Deliver) {
    self.publishedState = publishedState
    (id, startsAfter) = publishedState.follow(deliver)
  }

  deinit { publishedState.unfollow(id) }

  func cancel() { publishedState.unfollow(id) }
}
