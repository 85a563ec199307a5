// The keys that sign the tokens of users. They are made at the first start, stored, and rotated.
//
// A key is published for a day before it signs, so that verifiers that cache the published keys know it. It signs for 30
// days, and stays published until the last session cookie that it signed has expired.
//
// Invariant: there is always a key that may sign.

import JSON
import Locking
import OrderedStore

/// The signing keys of a server.
package final class SigningKeys: Sendable {
  /// Seconds from the publication of a key to its first signature.
  package static let publicationSeconds: Int64 = 86_400
  /// Seconds after which the next key is made.
  package static let rotationSeconds: Int64 = 30 * 86_400
  /// Seconds after which a key is removed: publication, rotation, the lifetime of session cookies, and a day.
  package static let lifetimeSeconds: Int64 = publicationSeconds + rotationSeconds + 15 * 86_400

  private struct State {
    /// The keys in the order of their creation.
    var keys: [SigningKey]
    var isRotating = false
  }

  private let database: IdentityDatabase
  private let clock: IdentityClock
  private let state: Guarded<State>

  private init(_ database: IdentityDatabase, _ clock: IdentityClock, _ keys: [SigningKey]) {
    self.database = database
    self.clock = clock
    state = Guarded(State(keys: keys))
  }

  /// Reads the stored keys, and makes the first one.
  package static func open(_ store: IdentityStore, clock: IdentityClock = IdentityClock()) async throws
    -> SigningKeys
  {
    let database = try await store.server()
    let keys = SigningKeys(database, clock, try await read(database))
    try await keys.rotateIfDue()
    return keys
  }

  private static func read(_ database: IdentityDatabase) async throws -> [SigningKey] {
    try await database.read { reader in
      try reader.objects(IdentityKeyLayout.key(.signingKey)).map { try SigningKey(storedForm: $0) }
    }.sorted { $0.createdAt < $1.createdAt }
  }

  /// The published keys.
  package var published: [SigningKey] { state.withLock { $0.keys } }

  /// The key that signs now: the newest one that has been published long enough, or the oldest.
  package var current: SigningKey {
    let now = clock.milliseconds / 1000
    let keys = published
    guard let key = keys.last(where: { $0.createdAt + Self.publicationSeconds <= now }) ?? keys.first else {
      preconditionFailure("invariant: there is a signing key")
    }
    return key
  }

  /// The public key with an ID; nil if it is not published.
  func publicKey(_ id: String) -> RSAKey? {
    state.withLock { state in state.keys.first { $0.id == id }?.publicKey }
  }

  /// Makes the next key if it is due, and removes keys whose tokens have all expired.
  package func rotateIfDue() async throws {
    let now = clock.milliseconds / 1000
    let isDue = state.withLock { state in
      guard !state.isRotating else { return false }
      let isDue = state.keys.last.map { $0.createdAt + Self.rotationSeconds <= now } ?? true
      state.isRotating = isDue
      return isDue
    }
    guard isDue else { return }
    defer { state.withLock { $0.isRotating = false } }
    let key = try await Self.make(at: now)
    let stored = key.storedForm
    let expired = published.filter { $0.createdAt + Self.lifetimeSeconds <= now }.map(\.id)
    try await database.write { transaction in
      try transaction.set(IdentityKeyLayout.key(.signingKey, key.id), stored)
      for id in expired { try transaction.clear(IdentityKeyLayout.key(.signingKey, id)) }
    }
    state.withLock { state in
      state.keys.removeAll { expired.contains($0.id) }
      state.keys.append(key)
    }
  }

  /// Makes a key on a dedicated thread, because it takes long.
  private static func make(at seconds: Int64) async throws -> SigningKey {
    try await withCheckedThrowingContinuation { continuation in
      _ = DedicatedThread { continuation.resume(with: Result { try SigningKey.make(at: seconds) }) }
    }
  }
}
