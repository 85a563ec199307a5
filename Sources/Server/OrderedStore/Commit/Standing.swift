// Where a database stands: what of it is durable and may be seen. All databases of a store share one published
// snapshot, so that an idle database holds no old one.
//
// Invariant: the fields of a standing and the snapshot change together under one lock, so that a reader sees a
// snapshot that holds exactly the commits up to `latest`.

import Locking

/// What a store has published.
struct Published {
  /// The newest durable state of the engine; nil once the store is closed.
  var snapshot: (any EngineSnapshot)?
}

/// One database's share of what is published.
// Safety: every mutable field is only touched under the lock of `published`.
final class Standing: @unchecked Sendable {
  typealias Deliver = @Sendable (LogRecord) -> Void

  let published: Guarded<Published>
  /// The newest durable commit or reservation.
  private var latest: Version
  /// The newest durable commit; between it and `latest` nothing differs.
  private var newestCommit: Version
  /// Everything up to it has been delivered to the followers too.
  private var delivered: Version
  /// No read and no log below it.
  private var floor: Version
  private var followers: [(id: Int, deliver: Deliver)] = []
  private var nextFollower = 0
  private var isDelivering = false
  private var removed = false

  init(_ published: Guarded<Published>, latest: Version, floor: Version) {
    self.published = published
    self.latest = latest
    self.newestCommit = latest
    self.delivered = latest
    self.floor = floor
  }

  /// What a reader needs to know, at one moment.
  struct Moment {
    var snapshot: any EngineSnapshot
    var latest: Version
    var newestCommit: Version
    var delivered: Version
    var floor: Version
  }

  /// The state at this moment.
  func moment() throws -> Moment {
    let moment = published.withLock { published -> Moment? in
      guard !removed, let snapshot = published.snapshot else { return nil }
      return Moment(
        snapshot: snapshot, latest: latest, newestCommit: newestCommit, delivered: delivered, floor: floor)
    }
    guard let moment else { throw Standing.gone }
    return moment
  }

  static let gone = StoreError.unavailable("the database is closed or removed")

  var latestVersion: Version { published.withLock { _ in latest } }

  /// Marks the database as removed: later reads are refused.
  func remove() {
    published.withLock { _ in
      removed = true
      followers = []
    }
  }

  /// Raises the floor; it never falls.
  func raiseFloor(to version: Version) {
    published.withLock { _ in floor = max(floor, min(version, latest)) }
  }

  var floorVersion: Version { published.withLock { _ in floor } }

  /// Takes over a durable commit or reservation; under the lock of `published`. Returns who follows the log.
  func publishLocked(_ commit: SequencedCommit) -> [(id: Int, deliver: Deliver)] {
    latest = max(latest, commit.version)
    if commit.isCommit { newestCommit = max(newestCommit, commit.version) }
    let following = commit.record == nil ? [] : followers
    if following.isEmpty, !isDelivering { delivered = latest }
    if !following.isEmpty { isDelivering = true }
    return following
  }

  /// Takes note that all that is published has been delivered; under the lock of `published`.
  func deliveredLocked() {
    isDelivering = false
    delivered = latest
  }

  /// Registers a follower of what is published from now on.
  func follow(_ deliver: @escaping Deliver) -> (id: Int, after: Version) {
    published.withLock { _ in
      nextFollower += 1
      followers.append((nextFollower, deliver))
      return (nextFollower, latest)
    }
  }

  func unfollow(_ id: Int) {
    published.withLock { _ in followers.removeAll { $0.id == id } }
  }
}

/// A follower's registration.
final class Following: LogSubscription {
  let startsAfter: Version
  private let standing: Standing
  private let id: Int

  init(_ standing: Standing, _ deliver: @escaping Standing.Deliver) {
    self.standing = standing
    (id, startsAfter) = standing.follow(deliver)
  }

  deinit { standing.unfollow(id) }

  func cancel() { standing.unfollow(id) }
}
