// The lifecycle of a Firestore instance: the network, pending writes and termination.

import FirestoreModel
import Foundation

extension Firestore {
  /// Uses the network again after `disableNetwork`.
  @preconcurrency
  public func enableNetwork(completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    client.setNetwork(enabled: true, completion: withTypedErrors(completion))
  }

  /// Uses the network again after `disableNetwork`.
  public func enableNetwork() async throws {
    try await Continuations.waitForCompletion { enableNetwork(completion: $0) }
  }

  /// Disables the network: reads use the cache, and writes wait.
  @preconcurrency
  public func disableNetwork(completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    client.setNetwork(enabled: false, completion: withTypedErrors(completion))
  }

  /// Disables the network: reads use the cache, and writes wait.
  public func disableNetwork() async throws {
    try await Continuations.waitForCompletion { disableNetwork(completion: $0) }
  }

  /// Calls the completion when the server has accepted or rejected every write made until now.
  @preconcurrency
  public func waitForPendingWrites(completion: @escaping @Sendable ((any Error)?) -> Void) {
    client.waitForPendingWrites { completion($0?.object) }
  }

  /// Waits until the server has accepted or rejected every write made until now.
  public func waitForPendingWrites() async throws {
    try await Continuations.waitForCompletion { waitForPendingWrites(completion: $0) }
  }

  /// Calls the listener each time that all snapshot listeners show the same state of the database.
  @discardableResult
  public func addSnapshotsInSyncListener(_ listener: @escaping () -> Void) -> any ListenerRegistration {
    let app = AppClosure(call: listener)
    return client.listenInSync { app.call() }
  }

  /// Terminates the instance. Its listeners receive no more events, and every call except `clearPersistence` stops the
  /// program. `firestore()` then returns a new instance. Deleting the app has the same effect.
  ///
  /// Reads in flight and calls that wait for pending writes fail with `cancelled`. The outcome of
  /// unacknowledged writes is unknown: their completions are never called, and `async` writes throw
  /// `unknown`. A transaction whose commit is in flight also throws `unknown`. A transaction that has not
  /// sent its commit fails with `cancelled`.
  @preconcurrency
  public func terminate(completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    end(withTypedErrors(completion))
  }

  /// Terminates the instance, and waits until it has released its resources.
  public func terminate() async throws {
    try await Continuations.waitForCompletion { terminate(completion: $0) }
  }

  /// Deletes the cache on disk with all its writes. The app calls it before the first use of an instance, or
  /// after `terminate`.
  ///
  /// Fails with `failedPrecondition` while this instance or another process uses the cache, and with `unavailable` if
  /// the files cannot be deleted.
  @preconcurrency
  public func clearPersistence(completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    let (folder, isInUse, callbackQueue) = (cacheFolder, isInUse, settings.dispatchQueue)
    DispatchQueue.global().async {
      let error: FirestoreError? =
        isInUse
        ? .failedPrecondition("Persistence cannot be cleared while the client is running.")
        : CacheFolder.clear(folder)
      if let completion { callbackQueue.async { completion(error?.object) } }
    }
  }

  /// Deletes the cache. Throws `failedPrecondition` while the instance is in use.
  public func clearPersistence() async throws {
    try await Continuations.waitForCompletion { clearPersistence(completion: $0) }
  }
}
